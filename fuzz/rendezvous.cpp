// fuzz/rendezvous.cpp — what the other ranks left in the rendezvous, a line each: where they are,
// what they bring, and numbers to agree on. Any of it may be another version's, or nobody's.
#include "runtime/rendezvous.hpp"

#include "fuzz/input.hpp"
#include "runtime/placement.hpp"
#include "runtime/udp/members.hpp"

using namespace cais;

namespace {

/// Gives this rank its own values back, and each other key the next line.
class Lines final : public runtime::Rendezvous {
 public:
  explicit Lines(std::string_view rest) : rest_(rest) {}
  Result<void> set(std::string_view key, std::string_view value) override {
    own_key_ = key;
    own_value_ = value;
    return {};
  }
  Result<std::string> get(std::string_view key, Duration) override {
    if (key == own_key_) return own_value_;
    if (rest_.empty()) return Error{ErrorCode::timed_out, "nothing left"};
    return std::string(fuzz::take_until(rest_, '\n'));
  }

 private:
  std::string_view rest_;
  std::string own_key_, own_value_;
};

template <typename Value>
void check_words(const Result<Value>& result) {
  if (!result) CAIS_CHECK(!result.error().message.empty());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  Lines rendezvous(fuzz::as_text(data, size).substr(1));
  const runtime::GroupConfig group{
      .name = "g", .rank = 0, .ranks = 3, .timeout = std::chrono::seconds(1)};
  switch (data[0] % 3) {
    case 0: {
      const auto members = runtime::exchange_members(rendezvous, group, {.host = "here"});
      check_words(members);
      if (members) CAIS_CHECK(members->size() == group.ranks);
      break;
    }
    case 1: {
      const auto least = runtime::agree_on_least(rendezvous, group, "window", 1000);
      check_words(least);
      if (least) CAIS_CHECK(*least <= 1000);
      break;
    }
    default: {
      const auto hosts = runtime::find_hosts({}, group, rendezvous);
      check_words(hosts);
      if (hosts) CAIS_CHECK(hosts->ranks() == group.ranks);
    }
  }
  return 0;
}
