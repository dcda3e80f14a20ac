// fuzz/store.cpp — messages of up to four clients of the key-value store, a line each: the first
// byte says whose. A key keeps its first value, each request has one answer, and who waits is
// answered when the key comes.
#include <array>
#include <map>
#include <optional>

#include "fuzz/input.hpp"
#include "io/store_sessions.hpp"

using namespace cais;

namespace {

using Answers = std::vector<io::StoreSessions::Answer>;

/// What the clients were told, against what they asked.
class Told {
 public:
  void asked(std::uint64_t client, std::string_view message) {
    CAIS_CHECK(!open_[client]);
    open_[client] = std::string(message);
  }
  void answered(const io::StoreSessions::Answer& answer) {
    std::optional<std::string>& request = open_.at(answer.client);
    CAIS_CHECK(request.has_value());
    const bool greeting = *request == io::store_hello && answer.message == io::store_hello;
    if (!greeting && request->front() == 'g') {
      CAIS_CHECK(answer.message.front() == 'v');
      const auto first = values_.try_emplace(request->substr(1), answer.message).first;
      CAIS_CHECK(first->second == answer.message);
    } else if (!greeting) {
      CAIS_CHECK(request->front() == 's');
      CAIS_CHECK(answer.message == "k" || answer.message.front() == 'e');
    }
    request.reset();
  }
  void left(std::uint64_t client) { open_[client].reset(); }

 private:
  std::map<std::uint64_t, std::optional<std::string>> open_;  // by client: its request
  std::map<std::string, std::string> values_;                 // by key with its length
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t clients = 4;
  io::StoreSessions sessions;
  Told told;
  std::array<bool, clients> there{};
  std::string_view rest = fuzz::as_text(data, size);
  while (!rest.empty()) {
    const std::size_t client = static_cast<std::uint8_t>(rest.front()) % clients;
    rest.remove_prefix(1);
    const std::string_view message = fuzz::take_until(rest, '\n');
    if (!there[client]) there[client] = sessions.enter(client);
    Answers answers;
    const bool good = sessions.receive(client, message, answers);
    there[client] = good;
    if (good) told.asked(client, message);
    for (const auto& answer : answers) told.answered(answer);
    if (!good) told.left(client);
  }
  CAIS_CHECK(sessions.keys() <= size);
  return 0;
}
