// A Result is a value or an error, and says which.
#include "base/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

namespace cais {
namespace {

Result<int> parsed(bool good) {
  if (!good) return Error{ErrorCode::malformed, "not a number"};
  return 42;
}

TEST(Result, HoldsAValue) {
  Result<int> result = parsed(true);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, 42);
  *result = 43;
  EXPECT_EQ(result.value(), 43);
}

TEST(Result, HoldsAnError) {
  const Result<int> result = parsed(false);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::malformed);
  EXPECT_EQ(result.error().message, "not a number");
}

TEST(Result, GivesItsValueAway) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
}

TEST(Result, OfNothing) {
  EXPECT_TRUE(Result<void>().ok());
  const Result<void> failed = Error{ErrorCode::timed_out, "waited 5 s for rank 3"};
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::timed_out);
}

TEST(ResultDeathTest, RefusesWhatItDoesNotHold) {
  EXPECT_DEATH((void)parsed(false).value(), "check failed: ok()");
  EXPECT_DEATH((void)parsed(true).error(), "check failed: !ok()");
  EXPECT_DEATH((void)Result<void>().error(), "check failed: !ok()");
}

TEST(ErrorCodes, HaveDistinctNames) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::system); ++code) {
    names.insert(to_string(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::system) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace cais
