// sim/oracle.hpp — what may be seen on the wire of one session, and what may not: the protocol's
// clauses and invariants (docs/protocol.md) as an observer outside the machines says them. It knows
// what each rank calls, hears what each rank sends, what the switch takes and sends, and what the
// ranks are told, and keeps the first thing that must not be.
//
// Its own state is small, and a copy of it goes on from where it was: the model checker copies it
// with the machines.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/tree.hpp"
#include "sim/workload.hpp"
#include "wire/header.hpp"

namespace cais::sim {

/// What the ranks of a session call, and which fragment that puts at which seq ("From ops to seqs",
/// worked out here a second time). Never changes; outlives the oracles that read it.
class Script {
 public:
  /// calls[r]: what rank r calls, in order. Ranks may differ where they must not.
  Script(std::uint8_t lanes, std::uint32_t window_fragments, Seq first_seq,
         std::vector<std::vector<const Job*>> calls);

  struct Place {
    std::uint32_t op;        // index in the rank's calls
    std::uint32_t fragment;  // of that op
    bool operator==(const Place&) const = default;
  };
  std::uint16_t ranks() const { return static_cast<std::uint16_t>(calls_.size()); }
  std::uint8_t lanes() const { return lanes_; }
  std::uint32_t window() const { return window_; }
  Seq first_seq() const { return first_seq_; }
  const std::vector<const Job*>& calls(Rank rank) const { return calls_[rank.value]; }
  std::optional<Place> place(Rank rank, Lane lane, Seq seq) const;
  /// What stands there when all ranks mean the same; nothing where they differ.
  const Job* agreed(Lane lane, Seq seq, Place& place) const;
  /// How far `seq` lies behind the lane's first.
  std::size_t index(Seq seq) const { return seq.value - first_seq_.value; }
  /// The most fragments that a rank puts into `lane`.
  std::size_t length(Lane lane) const;

 private:
  using Table = std::vector<std::vector<Place>>;  // by lane, from the first seq on

  Table tabulate(const std::vector<const Job*>& calls) const;

  std::uint8_t lanes_;
  std::uint32_t window_;
  Seq first_seq_;
  std::vector<std::vector<const Job*>> calls_;
  std::vector<std::shared_ptr<const Table>> tables_;  // by rank
};

/// Whether `payload` is `bytes` from `offset` on, padded with zeros (I3).
bool is_fragment(std::span<const std::byte> payload, const nir::TensorBytes& bytes,
                 std::uint64_t offset, const nir::Plan& plan, std::uint32_t real);

class Oracle {
 public:
  /// Both outlive it.
  Oracle(const Script& script, const Tree& tree);

  /// P1, P2: a rank puts a contribution or a want on the wire.
  void rank_sends(Rank rank, const wire::Header& header, std::span<const std::byte> payload);
  /// P17: a switch that serves the lane from now on begins another epoch there. At the root:
  /// whether not all that the last one began with has been finished again.
  bool begins(std::size_t which, Lane lane, Seq from);
  /// Switch `which` took a contribution that it had not.
  void switch_takes(std::size_t which, const wire::Header& header);
  /// P9: it took what its parent sent.
  void switch_hears(std::size_t which, const wire::Header& header);
  /// P7, P8, P10–P12, P16, I1, I3: it puts a packet on the wire, for a rank, for a switch below it,
  /// for its parent (P9).
  void switch_sends(std::size_t which, Rank to, const wire::Header& header,
                    std::span<const std::byte> payload);
  void switch_sends_down(std::size_t which, std::size_t to, const wire::Header& header,
                         std::span<const std::byte> payload);
  void switch_sends_up(std::size_t which, const wire::Header& header,
                       std::span<const std::byte> payload);
  /// I2: rank's collective number `op` is said to be done. (That its output is right is for whoever
  /// owns the memory to see.)
  void rank_is_done(Rank rank, std::uint64_t op);
  /// P12. `submitted`: how many of its collectives the rank had begun.
  void rank_is_refused(Rank rank, const agent::Mismatched& told, std::size_t submitted);

  /// Whether the switch has the contribution of `rank`, or one that it is part of.
  bool contributed(std::size_t which, Rank rank, Lane lane, Seq seq) const;
  /// I5: slots of the switch that hold some contributions and are not finished, in the lanes of
  /// `lanes_served`.
  std::size_t open_slots(std::size_t which, std::uint64_t lanes_served) const;
  std::uint64_t done(Rank rank) const { return done_[rank.value]; }
  bool refused(Rank rank) const { return (refused_ >> rank.value & 1) != 0; }
  /// Whether all ranks have done all that they call, or all were refused.
  bool over() const;

  /// The first thing that must not be; empty: none.
  const std::string& complaint() const { return complaint_; }
  void complain(std::string what);

 private:
  /// Of one switch.
  struct LaneState {
    std::vector<std::uint64_t> contributed;  // by index of the seq: bit r for rank r
    std::vector<bool> closed;                // by index: it holds that the fragment is finished
    std::vector<bool> ever_finished;         // at the root: in this epoch or an earlier one
    std::size_t begin = 0;                   // of the epoch
    std::size_t finished = 0;                // at the root: all before it have all contributions
    std::size_t open = 0;
  };
  /// Who a packet goes to: one rank, or the ranks below a switch.
  struct Receiver {
    std::uint64_t ranks;
    std::string name;
  };
  LaneState& lane(std::size_t which, Lane of) { return lanes_[which][of.value]; }
  const LaneState& lane(std::size_t which, Lane of) const { return lanes_[which][of.value]; }
  const LaneState& at_root(Lane of) const { return lane(tree_->root(), of); }
  std::uint64_t taken(std::size_t which, Lane of, Seq seq) const;
  bool finished(Lane lane, Seq seq) const;
  bool ever_finished(Lane lane, Seq seq) const;
  void close(std::size_t which, Lane of, Seq seq);
  void check_down(std::size_t which, const Receiver& to, const wire::Header& header,
                  std::span<const std::byte> payload);
  void check_contribution(Rank rank, const Job& job, const Script::Place& place,
                          const wire::Header& header, std::span<const std::byte> payload);
  void check_partial(std::size_t which, const Job& job, const Script::Place& place,
                     const wire::Header& header, std::span<const std::byte> payload);
  void check_passed_up(std::size_t which, const Job& job, const Script::Place& place,
                       const wire::Header& header, std::span<const std::byte> payload);
  void check_result(std::size_t which, const Receiver& to, const wire::Header& header,
                    std::span<const std::byte> payload);
  void check_done(const Receiver& to, const wire::Header& header);
  void check_waiting(std::size_t which, const Receiver& to, const wire::Header& header);
  void check_mismatch(const wire::Header& header, std::span<const std::byte> payload);

  const Script* script_;
  const Tree* tree_;
  std::uint64_t everyone_;
  std::vector<std::vector<LaneState>> lanes_;  // by switch
  std::vector<std::uint64_t> done_;            // by rank
  std::uint64_t refused_ = 0;
  struct Where {
    Lane lane;
    Seq seq;
    bool operator==(const Where&) const = default;
  };
  std::vector<Where> refusals_;  // of the switches
  std::string complaint_;
};

}  // namespace cais::sim
