#include "store_rendezvous.hpp"

#include <c10/util/Exception.h>

namespace cais::pytorch {
namespace {

std::string full_key(std::string_view key) { return "cais/" + std::string(key); }

std::string first_line(const char* text) {
  const std::string_view all(text);
  return std::string(all.substr(0, all.find('\n')));
}

}  // namespace

Result<void> StoreRendezvous::set(std::string_view key, std::string_view value) {
  try {
    store_->set(full_key(key), std::vector<std::uint8_t>(value.begin(), value.end()));
    return {};
  } catch (const std::exception& error) {
    return Error{ErrorCode::unavailable, "the store of the process group did not take '" +
                                             full_key(key) + "': " + first_line(error.what())};
  }
}

Result<std::string> StoreRendezvous::get(std::string_view key, Duration timeout) {
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(timeout);
  try {
    store_->wait({full_key(key)}, limit);
    const std::vector<std::uint8_t> value = store_->get(full_key(key));
    return std::string(value.begin(), value.end());
  } catch (const c10::DistStoreError& error) {
    return Error{ErrorCode::timed_out, "'" + full_key(key) +
                                           "' did not appear in the store of the "
                                           "process group within " +
                                           std::to_string(limit.count()) +
                                           " ms: " + first_line(error.what())};
  } catch (const std::exception& error) {
    return Error{ErrorCode::unavailable, "the store of the process group has no '" + full_key(key) +
                                             "': " + first_line(error.what())};
  }
}

}  // namespace cais::pytorch
