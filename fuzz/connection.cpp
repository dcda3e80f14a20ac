// fuzz/connection.cpp — any bytes on a control connection, in pieces: the messages that come are
// those that stand in the bytes, and a length that is not allowed breaks the connection.
#include "io/control/connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "fuzz/input.hpp"
#include "wire/bytes.hpp"

using namespace cais;

namespace {

constexpr std::size_t length_bytes = 4;
constexpr std::size_t input_bytes_max = 32u << 10;

/// The next message in the stream, as the contract says; false when none stands there whole.
bool expected(std::string_view& stream, std::string_view& message, bool& broken) {
  if (stream.size() < length_bytes) return false;
  const auto length =
      wire::load_network<std::uint32_t>(reinterpret_cast<const std::byte*>(stream.data()));
  broken = length > io::message_bytes_max;
  if (broken || stream.size() - length_bytes < length) return false;
  message = stream.substr(length_bytes, length);
  stream.remove_prefix(length_bytes + length);
  return true;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  std::array<int, 2> ends{};
  CAIS_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const io::Fd sender(ends[0]);
  io::Connection connection{io::Fd(ends[1])};
  const std::size_t piece_bytes = data[0] + std::size_t{1};
  const std::string_view all = fuzz::as_text(data, size).substr(1).substr(0, input_bytes_max);
  std::string_view stream = all;
  bool broken = false;
  std::string message;
  for (std::size_t at = 0; at < all.size(); at += piece_bytes) {
    const std::string_view piece = all.substr(at, piece_bytes);
    CAIS_CHECK(::send(sender.get(), piece.data(), piece.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(piece.size()));
    std::string_view wanted;
    while (connection.receive(message)) {
      CAIS_CHECK(expected(stream, wanted, broken));
      CAIS_CHECK(message == wanted);
    }
    const std::string_view come = all.substr(0, at + piece.size());
    std::string_view left = come.substr(std::min(all.size() - stream.size(), come.size()));
    CAIS_CHECK(!expected(left, wanted, broken));
    CAIS_CHECK(broken == (connection.state() == io::Connection::State::broken));
    if (broken) return 0;
  }
  return 0;
}
