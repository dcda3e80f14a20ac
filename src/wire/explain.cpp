// Descriptors in words, for logs and for the error that a user gets when ranks disagree (P12).
#include <sstream>
#include <vector>

#include "wire/descriptor.hpp"

namespace cais::wire {
namespace {

OpKind kind_of(const CommDescriptor& d) { return static_cast<OpKind>(d.kind); }

std::string shape_text(const CommDescriptor& d) {
  std::string text = "[";
  for (std::size_t dim = 0; dim < d.dims; ++dim) {
    if (dim != 0) text += ", ";
    text += std::to_string(d.shape[dim]);
  }
  return text + "]";
}

std::string type_name(std::uint8_t code) {
  return std::string(to_string(static_cast<DType>(code)));
}

/// "dtype (float32 here, bfloat16 there)" for each field that differs, most telling first.
class Differences {
 public:
  template <typename T>
  void add(const char* field, const T& ours, const T& theirs) {
    if (ours == theirs) return;
    text_ << (count_++ == 0 ? "" : ", ") << field << " (" << ours << " and " << theirs << ")";
  }
  std::string text() const { return text_.str(); }
  bool empty() const { return count_ == 0; }

 private:
  std::ostringstream text_;
  int count_ = 0;
};

}  // namespace

std::string to_string(const CommDescriptor& d) {
  std::ostringstream text;
  text << to_string(kind_of(d));
  if (d.reduce_op != 0) text << ' ' << to_string(static_cast<ReduceOp>(d.reduce_op));
  if (kind_of(d) != OpKind::barrier) {
    text << ' ' << type_name(d.dtype) << ' ' << shape_text(d);
    if (d.shard_dim >= 0) text << " sharded in dim " << int{d.shard_dim};
  }
  text << " over " << d.ranks << (d.ranks == 1 ? " rank" : " ranks");
  if (has_root(kind_of(d))) text << ", root " << d.root;
  return text.str();
}

std::string explain_mismatch(const CommDescriptor& ours, Rank us, const CommDescriptor& theirs,
                             Rank them) {
  Differences calls;
  calls.add("collective", to_string(kind_of(ours)), to_string(kind_of(theirs)));
  calls.add("reduce op", to_string(static_cast<ReduceOp>(ours.reduce_op)),
            to_string(static_cast<ReduceOp>(theirs.reduce_op)));
  calls.add("dtype", type_name(ours.dtype), type_name(theirs.dtype));
  calls.add("shape", shape_text(ours), shape_text(theirs));
  calls.add("shard dim", int{ours.shard_dim}, int{theirs.shard_dim});
  calls.add("root", ours.root, theirs.root);
  calls.add("ranks", ours.ranks, theirs.ranks);
  calls.add("members of the group", ours.group, theirs.group);
  calls.add("bytes of a rank's unit", ours.unit_bytes, theirs.unit_bytes);
  const bool same_call = calls.empty();
  Differences settings;
  settings.add("fragment bytes", ours.fragment_bytes, theirs.fragment_bytes);
  settings.add("chunk bytes", ours.chunk_bytes, theirs.chunk_bytes);
  settings.add("lanes", unsigned{ours.lanes}, unsigned{theirs.lanes});
  settings.add("guard bits", unsigned{ours.guard_bits}, unsigned{theirs.guard_bits});
  settings.add("shape of the sum", ours.shape_of_sum, theirs.shape_of_sum);
  std::ostringstream text;
  text << "mismatched collective: rank " << us.value << " called " << to_string(ours) << ", rank "
       << them.value << " called " << to_string(theirs) << "; ";
  if (!same_call) {
    text << "they differ in " << calls.text()
         << ". All ranks of a group must call the same collectives in the same order.";
  } else if (!settings.empty()) {
    text << "the calls agree, but the ranks' settings differ in " << settings.text()
         << ". All ranks of a group need the same settings.";
  } else {
    text << "the descriptors are equal.";
  }
  return text.str();
}

}  // namespace cais::wire
