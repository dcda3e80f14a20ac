// fuzz/mesh_messages.cpp — any bytes as a message of the control channel: what decodes is encoded
// to the same bytes, but for an error code that this version does not know.
#include "runtime/udp/mesh_messages.hpp"

#include "fuzz/input.hpp"

using namespace cais::runtime;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = cais::fuzz::as_text(data, size);
  const auto message = mesh::decode(bytes);
  if (!message) {
    CAIS_CHECK(message.error().code == cais::ErrorCode::malformed);
    return 0;
  }
  const std::string again = mesh::encode(*message);
  CAIS_CHECK(again.size() == bytes.size());
  CAIS_CHECK(again == bytes || std::holds_alternative<mesh::Failed>(*message));
  CAIS_CHECK(mesh::decode(again).ok());
  return 0;
}
