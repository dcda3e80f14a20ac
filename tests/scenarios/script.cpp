#include "tests/scenarios/script.hpp"

#include <cstring>
#include <sstream>

#include "nir/targets/host/lower.hpp"

namespace cais::scenarios {
namespace {

template <typename T>
void put(std::vector<std::byte>& bytes, double value) {
  const T typed = static_cast<T>(value);
  const auto* raw = reinterpret_cast<const std::byte*>(&typed);
  bytes.insert(bytes.end(), raw, raw + sizeof typed);
}

template <typename T>
std::vector<double> get(std::span<const std::byte> bytes) {
  std::vector<double> values;
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T typed;
    std::memcpy(&typed, bytes.data() + i, sizeof typed);
    values.push_back(static_cast<double>(typed));
  }
  return values;
}

}  // namespace

Words::Words(const std::string& line) {
  std::istringstream in(line.substr(0, line.find('#')));
  for (std::string word; in >> word;) words_.push_back(word);
}

std::string Words::word() {
  if (empty()) throw Failure("the line ends too early");
  return words_[next_++];
}

bool Words::take(const std::string& word) {
  if (empty() || words_[next_] != word) return false;
  ++next_;
  return true;
}

void Words::need(const std::string& word) {
  if (!take(word)) throw Failure("expected the word '" + word + "'");
}

std::int64_t Words::number() {
  const std::string text = word();
  std::size_t used = 0;
  const std::int64_t value = std::stoll(text, &used, 0);
  if (used != text.size()) throw Failure("'" + text + "' is not a number");
  return value;
}

std::vector<std::int64_t> Words::numbers() {
  std::vector<std::int64_t> all;
  while (!empty() && std::isdigit(static_cast<unsigned char>(words_[next_][0]))) {
    all.push_back(number());
  }
  return all;
}

std::optional<std::vector<double>> Words::values() {
  if (empty() || words_[next_][0] != '[') return std::nullopt;
  std::string text;
  do {
    text += word() + ' ';
  } while (text.find(']') == std::string::npos);
  std::istringstream in(text.substr(1, text.find(']') - 1));
  std::vector<double> all;
  for (double value; in >> value;) all.push_back(value);
  return all;
}

std::vector<std::byte> Op::encode(const std::vector<double>& values) const {
  std::vector<std::byte> bytes;
  for (const double value : values) {
    if (plan.dtype == DType::int64) put<std::int64_t>(bytes, value);
    if (plan.dtype == DType::int32) put<std::int32_t>(bytes, value);
    if (plan.dtype == DType::float32) put<float>(bytes, value);
  }
  return bytes;
}

std::vector<double> Op::decode(std::span<const std::byte> bytes) const {
  if (plan.dtype == DType::int64) return get<std::int64_t>(bytes);
  if (plan.dtype == DType::int32) return get<std::int32_t>(bytes);
  return get<float>(bytes);
}

Op read_op(Words& words, std::uint16_t ranks, Seq at) {
  Op op;
  op.name = words.word();
  wire::DescriptorSpec spec;
  const auto kind = op_kind_named(words.word());
  if (!kind) throw Failure("no such kind of op");
  spec.kind = *kind;
  std::string next = words.word();
  if (const auto reduce_op = reduce_op_named(next); reduce_op && wire::reduces(*kind)) {
    spec.reduce_op = *reduce_op;
    next = words.word();
  }
  const auto dtype = dtype_named(next);
  if (!dtype) throw Failure("no such dtype: " + next);
  spec.dtype = *dtype;
  spec.ranks = ranks;
  spec.unit_elements = static_cast<std::uint64_t>(words.number());
  spec.fragment_bytes = wire::fragment_bytes_step;
  if (words.take("root")) spec.root = Rank(static_cast<std::uint16_t>(words.number()));
  op.at = words.take("at") ? Seq(static_cast<std::uint32_t>(words.number())) : at;
  const auto descriptor = wire::make_descriptor(spec);
  if (!descriptor) throw Failure(descriptor.error().message);
  const auto plan = nir::lower(*descriptor);
  if (!plan) throw Failure(plan.error().message);
  op.descriptor = *descriptor;
  op.plan = *plan;
  op.plan.lanes = 1;
  op.hash = wire::hash(op.descriptor);
  return op;
}

std::string show(const std::vector<double>& values) {
  std::ostringstream out;
  out << '[';
  for (std::size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : " ") << values[i];
  return out.str() + "]";
}

std::string show(const std::vector<std::int64_t>& ranks) {
  std::ostringstream out;
  for (std::size_t i = 0; i < ranks.size(); ++i) out << (i == 0 ? "" : " ") << ranks[i];
  return out.str();
}

std::vector<std::int64_t> ranks_in(std::uint64_t bitmap) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t rank = 0; rank < 64; ++rank) {
    if ((bitmap >> rank & 1) != 0) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace cais::scenarios
