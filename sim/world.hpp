// sim/world.hpp — agents and switches, as they ship, in a network that does its worst; driven as
// their runtimes drive them, with time and chance from one seed (I9). A safety phase with faults is
// followed by a liveness phase without (the idea of TigerBeetle's VOPR): in the first nothing wrong
// may happen, in the second everything must come to its end. After every step the invariants are
// held against the oracle of each session, and against the machines' own state.
//
// world.cpp: time, groups, faults by plan; ranks.cpp and switches.cpp: the machines' runtimes and
// what is checked when a packet reaches one; management.cpp: controllers, their orders, crashes.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "base/rng.hpp"
#include "core/agent/agent.hpp"
#include "core/control/controller.hpp"
#include "core/control/member.hpp"
#include "core/switching/switch.hpp"
#include "sim/group.hpp"
#include "sim/network.hpp"
#include "sim/report.hpp"
#include "sim/scenario.hpp"
#include "sim/timeline.hpp"

namespace cais::sim {

/// Takes one line of what happens; empty: nobody looks.
using Trace = std::function<void(const std::string&)>;

class World {
 public:
  World(const Scenario& scenario, Trace trace);
  ~World();

  /// To the end, or to the first thing that must not be.
  void run();

  /// Empty: all is as it must be.
  const std::string& failure() const { return failure_; }
  const Report& report() const { return report_; }
  /// A number that tells two runs apart: every packet that arrived, in order, with its time.
  std::uint64_t digest() const { return digest_; }

 private:
  struct Delivery {
    Bytes bytes;
    /// The endpoint of the rank or switch that sent it, or of an impostor.
    std::uint32_t from;
    bool damaged;
  };
  /// A process that may pause: what comes meanwhile waits, up to a bound.
  struct Process {
    bool paused(Instant now) const { return now < paused_until; }
    Instant paused_until{};
    std::deque<Delivery> inbox;
  };
  struct RankProcess : Process {
    Rng rng{0};
    std::unique_ptr<agent::Agent> agent;  // null while its session is not open
    Group* group = nullptr;
    Rank rank{};
    control::RankMember member{Epoch()};
    std::vector<control::TreeNumber> servers;  // by lane
  };
  struct SwitchProcess : Process {
    SwitchProcess(std::size_t plane_number, std::size_t node_number, Rng numbers,
                  std::size_t buffers, std::size_t buffer_bytes)
        : plane(plane_number), node(node_number), rng(numbers), pool(buffers, buffer_bytes) {}
    std::size_t plane;  // which lanes it serves
    std::size_t node;   // its place in the groups' trees
    Rng rng;
    BufferPool pool;  // outlives what the machine keeps
    switching::Switch machine;
    bool drain_planned = false;
    bool crashed = false;
    std::uint64_t life = 0;        // how often it was started anew
    std::uint64_t known_life = 0;  // the newest that the management knows of
    control::SwitchMember member;
    bool cut_off = false;  // from the management, not from the ranks
    /// Of those, the ones whose ranks and other switches have left it behind. Nobody takes what it
    /// sends.
    std::set<SessionId> forsaken;
  };
  /// A controller; one that is taken for dead may go on for a while.
  struct Steward {
    control::Controller machine;
    bool alive = true;
  };

  // world.cpp
  void open(std::uint64_t session, std::uint64_t life);
  void close_when_over(Group& group);
  void close(Group& group);
  void plan_faults();
  void pause(Process& process, Fault fault, Instant until);
  void heal();
  bool step();
  Instant next_timer() const;
  void run_timers();
  void check_stalls();
  void check_slots(std::size_t which_switch);
  bool is_current(const Group& group) const;
  void check_closed(Group& group);
  void fail(const std::string& what);
  void take_complaint(const Group& group);
  template <typename... Parts>
  void tell(const Parts&... parts);
  bool compares(std::size_t state_size);

  // ranks.cpp
  void call(RankProcess& node);
  void describe(RankProcess& node, std::size_t op);
  void submit_described(RankProcess& node);
  void rank_receives(RankProcess& node, const Delivery& packet);
  void check_agent(RankProcess& node, const Delivery& packet, const agent::Counters& before);
  void drain(RankProcess& node);
  void take_event(RankProcess& node, const agent::Event& event);
  void end_by_management(Group& group, const agent::Mismatched& told);
  void send_to_switch(RankProcess& node, const agent::Transmit& out);
  std::uint32_t endpoint(const RankProcess& node) const;

  // management.cpp
  std::vector<control::TreeNumber> homes_of(const Group& group) const;
  control::SessionSpec spec_of(const Group& group) const;
  void put_under_control(Group& group, bool all_up);
  bool is_over(const Group& group) const;
  void hear_of_switch(std::size_t which);
  void start_anew(std::size_t which);
  void crash_switch(std::size_t which, Instant until);
  void cut_off_switch(std::size_t which, Instant until);
  Instant expect_loss(std::size_t which, std::uint64_t life);
  void expect_return(std::size_t which, Instant earliest);
  void crash_rank(RankProcess& node);
  void crash_controller();
  void take_over();
  void report_rank(const RankProcess& node);
  void steer();
  void take_event(Steward& steward, const control::Event& event);
  void carry_order(const control::Order& order);
  void obey(const control::Order& order, std::uint64_t life);
  void obey(RankProcess& node, const control::Order& order);
  void obey(std::size_t which, const control::Order& order);
  void begin(std::size_t which, Group& group, const control::Order& order, bool anew);
  void forsake_older(Group& group, Epoch epoch);
  void answer(const control::Order& order, const control::Response& response);
  void over_the_wire(std::function<void()> arrive);

  // switches.cpp
  void open_at(std::size_t which, Group& group, Epoch epoch);
  void bind_at(std::size_t which, const Group& group);
  Group* served(std::size_t which, const wire::Header& header);
  void forsaken_receives(std::size_t which, const Delivery& packet);
  void switch_receives(std::size_t which, const Delivery& packet);
  void check_switch(std::size_t which, const Delivery& packet, switching::Drop drop);
  bool changes_nothing(switching::Drop drop, const wire::Header& header, bool was_there) const;
  void drain(std::size_t which);
  void note_taken(std::size_t which, Group& group, const wire::Header& header, bool was_there);
  void send(std::size_t which, const switching::Transmit& out, switching::Port port);
  void send_to_rank(std::size_t which, Group& group, const wire::Header& header,
                    std::vector<std::byte> packet, RankProcess& to);
  void send_to_switch(std::size_t which, Group& group, const wire::Header& header,
                      std::vector<std::byte> packet, std::size_t to);
  void carry_to_rank(std::size_t which, std::vector<std::byte> packet, RankProcess& to);
  void carry_to_switch(std::size_t which, std::vector<std::byte> packet, std::size_t to,
                       std::uint32_t from);
  void count_sent(const wire::Header& header, bool up);
  void check_counters(const switching::Counters& counters);

  // Both ways.
  void carry(std::size_t link, std::vector<std::byte> packet,
             const std::function<void(const Delivery&)>& arrive, std::uint32_t from);
  void record(const Delivery& packet, std::uint32_t to);
  std::size_t link(std::uint32_t endpoint, std::size_t plane, bool up) const;
  std::size_t link_above(std::size_t which_switch, bool up) const;
  /// Ranks have the first endpoints, then their impostors, switches, and their impostors.
  std::uint32_t endpoint_of(std::size_t which_switch) const;
  bool impostor_strikes();
  bool is_impostor(std::uint32_t endpoint) const;
  std::size_t at_node(std::size_t plane, std::size_t node) const;
  template <typename Node>
  bool wait_in_inbox(Node& node, const Delivery& packet);

  Scenario scenario_;
  Trace trace_;
  Rng sample_;
  Timeline timeline_;
  Network network_;
  Instant safe_until_;              // the end of the safety phase
  std::vector<RankProcess> ranks_;  // by endpoint
  std::size_t nodes_per_plane_;
  std::vector<std::unique_ptr<SwitchProcess>> switches_;  // plane by plane
  std::vector<std::unique_ptr<Group>> groups_;            // by session; the life that is under way
  std::vector<std::unique_ptr<Group>> past_;  // agents of these are gone; packets are not
  std::size_t groups_left_ = 0;               // lives that have not ended
  std::deque<Steward> stewards_;              // the last one is the one in charge; may be none
  Rng control_;
  Rng impostor_;
  std::string failure_;
  Report report_;
  std::uint64_t digest_ = 0;
};

}  // namespace cais::sim
