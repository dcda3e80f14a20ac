// tests/scenarios/script.hpp — one line of a packet scenario as words, and how to read them.
// docs/protocol.md, "Scenarios", gives the grammar.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "nir/plan.hpp"
#include "wire/descriptor.hpp"

namespace cais::scenarios {

/// What is wrong with a scenario, or with the machine under it.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The words of a line, read from left to right.
class Words {
 public:
  explicit Words(const std::string& line);

  bool empty() const { return next_ == words_.size(); }
  std::string word();                  // the next, whatever it is
  bool take(const std::string& word);  // the next, if it is this one
  void need(const std::string& word);
  std::int64_t number();
  /// Numbers as long as there are some: "0 2 3".
  std::vector<std::int64_t> numbers();
  /// "[1 2 3]"; nothing when no bracket follows.
  std::optional<std::vector<double>> values();

 private:
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

/// An op of a scenario: its descriptor, and the seq in lane 0 where it begins.
struct Op {
  std::string name;
  wire::CommDescriptor descriptor{};
  nir::Plan plan;
  DescriptorHash hash{};
  Seq at{};

  /// The fragment that stands at `seq`.
  std::uint32_t fragment(Seq seq) const { return static_cast<std::uint32_t>(distance(at, seq)); }
  std::vector<std::byte> encode(const std::vector<double>& values) const;
  std::vector<double> decode(std::span<const std::byte> bytes) const;
};

/// "NAME KIND [REDUCE_OP] DTYPE COUNT [root R] [at SEQ]": COUNT elements in a unit, fragments of 16
/// bytes, one lane.
Op read_op(Words& words, std::uint16_t ranks, Seq at);

std::string show(const std::vector<double>& values);
std::string show(const std::vector<std::int64_t>& ranks);
/// The ranks of a bitmap.
std::vector<std::int64_t> ranks_in(std::uint64_t bitmap);

/// A machine that a scenario is played on. `step` takes one line; it throws Failure.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual void step(Words words) = 0;
  /// At the end of the scenario: nothing may be left that was not expected.
  virtual void finish() = 0;
};

std::unique_ptr<Stage> make_switch_stage(Words& words);
std::unique_ptr<Stage> make_agent_stage(Words& words);

}  // namespace cais::scenarios
