#include "runtime/udp/mesh_messages.hpp"

#include <array>
#include <span>

#include "wire/bytes.hpp"

namespace cais::runtime::mesh {
namespace {

class Writer {
 public:
  template <std::unsigned_integral T>
  void number(T value) {
    std::array<std::byte, sizeof(T)> bytes;
    wire::store_network(bytes.data(), value);
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void descriptor(const wire::CommDescriptor& descriptor) {
    const auto bytes = wire::as_bytes(descriptor);
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void rest(std::string_view text) { text_.append(text); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// Reads past the end give zeros and leave `good()` false.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  template <std::unsigned_integral T>
  T number() {
    const std::string_view bytes = take(sizeof(T));
    return bytes.empty() ? T{0}
                         : wire::load_network<T>(reinterpret_cast<const std::byte*>(bytes.data()));
  }
  wire::CommDescriptor descriptor() {
    const std::string_view bytes = take(wire::descriptor_bytes);
    Result<wire::CommDescriptor> parsed =
        wire::parse_descriptor(std::as_bytes(std::span(bytes.data(), bytes.size())));
    if (!parsed) good_ = false;
    return parsed ? *parsed : wire::CommDescriptor{};
  }
  std::string rest() { return std::string(take(text_.size())); }
  bool good() const { return good_ && text_.empty(); }

 private:
  std::string_view take(std::size_t count) {
    if (text_.size() < count) {
      good_ = false;
      text_ = {};
      return {};
    }
    const std::string_view result = text_.substr(0, count);
    text_.remove_prefix(count);
    return result;
  }
  std::string_view text_;
  bool good_ = true;
};

void write(Writer& out, const Hello& hello) {
  out.number(hello.secret);
  out.number(hello.rank.value);
}
Hello read_hello(Reader& in) {
  const auto secret = in.number<std::uint64_t>();
  return Hello{secret, Rank(in.number<std::uint16_t>())};
}

void write(Writer&, const Welcome&) {}

void write(Writer& out, const Describe& describe) {
  out.descriptor(describe.descriptor);
  out.descriptor(describe.shown);
}
Describe read_describe(Reader& in) {
  Describe describe{};
  describe.descriptor = in.descriptor();
  describe.shown = in.descriptor();
  return describe;
}

void write(Writer& out, const Defined& defined) { out.number(defined.descriptor.value); }

void write(Writer& out, const Mismatch& mismatch) {
  out.number(mismatch.first.value);
  out.number(mismatch.second.value);
  out.descriptor(mismatch.first_descriptor);
  out.descriptor(mismatch.second_descriptor);
}
Mismatch read_mismatch(Reader& in) {
  Mismatch mismatch{};
  mismatch.first = Rank(in.number<std::uint16_t>());
  mismatch.second = Rank(in.number<std::uint16_t>());
  mismatch.first_descriptor = in.descriptor();
  mismatch.second_descriptor = in.descriptor();
  return mismatch;
}

void write(Writer& out, const Failed& failed) {
  out.number(static_cast<std::uint8_t>(failed.code));
  out.rest(failed.message);
}
Failed read_failed(Reader& in) {
  const auto code = in.number<std::uint8_t>();
  const bool known = code <= static_cast<std::uint8_t>(ErrorCode::system);
  return Failed{known ? static_cast<ErrorCode>(code) : ErrorCode::aborted, in.rest()};
}

void write(Writer& out, const Bye& bye) { out.number(bye.ops); }

Result<Message> read(std::uint8_t kind, Reader& in) {
  switch (kind) {
    case 0:
      return Message(read_hello(in));
    case 1:
      return Message(Welcome{});
    case 2:
      return Message(read_describe(in));
    case 3:
      return Message(Defined{DescriptorHash(in.number<std::uint64_t>())});
    case 4:
      return Message(read_mismatch(in));
    case 5:
      return Message(read_failed(in));
    case 6:
      return Message(Bye{in.number<std::uint64_t>()});
    default:
      return Error{ErrorCode::malformed, "unknown control message " + std::to_string(kind)};
  }
}

}  // namespace

std::string encode(const Message& message) {
  Writer out;
  out.number(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& fields) { write(out, fields); }, message);
  return out.take();
}

Result<Message> decode(std::string_view bytes) {
  Reader in(bytes);
  const auto kind = in.number<std::uint8_t>();
  if (!in.good() && bytes.empty()) return Error{ErrorCode::malformed, "empty control message"};
  Result<Message> message = read(kind, in);
  if (message && !in.good()) {
    return Error{ErrorCode::malformed, "control message " + std::to_string(kind) + " of " +
                                           std::to_string(bytes.size()) + " bytes"};
  }
  return message;
}

}  // namespace cais::runtime::mesh
