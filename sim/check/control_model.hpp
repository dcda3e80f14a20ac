// sim/check/control_model.hpp — a small world of controllers (P15, P17–P20): two ranks of one
// session, a few switches, a controller, and perhaps another that takes over while the first goes
// on. Built of the machines that ship; agents and packets are not in it, only how far each rank has
// come.
//
// Orders and answers are a set: each may arrive at any time, any number of times, or never.
// Switches lose all that they have, or are cut off from their controller and go on; the controller
// in charge hears of both, and of their return, at any time later. A rank may die, and the session
// be closed, at any time. Each of these happens as often as the world says; a controller gives its
// orders again once while the walk goes on, and as often as it must in the run that ends without
// faults.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/control/controller.hpp"
#include "core/control/member.hpp"
#include "sim/check/walk.hpp"

namespace cais::sim {

struct ControlWorld {
  std::string name;
  std::string what;
  /// The first `machines` switches have these trees, one lane is at the first of them.
  std::uint32_t machines;
  std::vector<std::vector<control::SwitchNumber>> trees;
  std::optional<control::TreeNumber> fallback = {};
  // How often, at most.
  int losses = 1;       // of a switch's state, or of the way to it
  int successions = 0;  // of controllers
  int deaths = 0;       // of ranks
  bool closes = false;  // the session is closed
};
/// All that can be checked by name.
const std::vector<ControlWorld>& control_worlds();

class ControlModel {
 public:
  struct Action {
    enum class Kind : std::uint8_t {
      mail,     // an order or an answer arrives
      repeat,   // a controller gives its orders again
      advance,  // a rank settles a fragment
      crash,    // a switch loses all that it has
      cut,      // a switch is out of its controller's reach
      lose,     // the controller in charge hears that a switch is lost
      find,     // … that a switch is there
      succeed,  // another controller takes over
      die,      // a rank
      report,   // the controller in charge hears of that
      close,    // it closes the session
    };
    Kind kind;
    std::uint32_t which = 0;  // mail, controller, rank or switch
  };

  struct State {
    struct Steward {
      explicit Steward(control::Controller controller) : machine(std::move(controller)) {}

      control::Controller machine;
      std::map<std::uint32_t, std::uint64_t> lives;  // of the switches that it believes to live
      int repeated = 0;
      Instant now{};
    };
    struct RankProcess {
      control::RankMember member;
      std::uint32_t position = 0;  // the first unsettled seq
      bool alive = true;
    };
    struct SwitchProcess {
      control::SwitchMember member;
      std::uint64_t life = 0;
      bool cut = false;
    };
    /// An epoch, as the ranks that begin it have it.
    struct Begun {
      std::vector<Seq> from;
      std::vector<control::TreeNumber> servers;
      bool operator==(const Begun&) const = default;
    };

    const std::string& complaint() const { return wrong; }

    std::vector<Steward> stewards;  // the last is in charge
    std::vector<RankProcess> ranks;
    std::vector<SwitchProcess> switches;
    std::vector<std::uint32_t> sent;            // mail, in order
    std::map<Epoch, Begun> begun;               // by ranks
    std::map<Epoch, std::uint64_t> begun_at;    // switches, bit by bit
    std::vector<std::uint32_t> dead;            // ranks that the controller in charge has heard of
    std::optional<std::string> failed_because;  // what a rank was told
    int losses = 0;
    int deaths = 0;
    bool closing = false;
    bool closed = false;
    std::string wrong;
  };

  explicit ControlModel(const ControlWorld& world) : world_(world) {}

  State first();
  void actions(const State& state, std::vector<Action>& out) const;
  bool possible(const State& state, const Action& action) const;
  void apply(State& state, const Action& action);
  std::uint64_t fingerprint(const State& state) const;
  End ends(State state, Sent so_far);
  std::string to_string(const Action& action) const;

 private:
  /// An order on its way to a machine, or an answer on its way to a controller.
  struct Mail {
    std::optional<control::Order> order;
    std::uint64_t life = 0;  // of the switch, when the order was given: a connection ends with it
    std::optional<control::Answer> answer;
    std::size_t to = 0;  // the answer's controller
    std::string words;   // all that it says
  };

  control::SessionSpec spec() const;
  bool is_over(const State& state) const;
  bool news(const State& state, Action& next) const;
  void send(State& state, Mail mail);
  void deliver(State& state, const Mail& mail);
  void obey(State& state, const control::Order& order);
  void begins(State& state, const control::Order& order);
  void steer(State& state);
  void find(State& state, std::uint32_t machine);
  void succeed(State& state);
  void check(State& state) const;
  void complain(State& state, const std::string& what) const {
    if (state.wrong.empty()) state.wrong = what;
  }

  ControlWorld world_;
  std::vector<Mail> mail_;  // by number
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<std::uint32_t> fresh_;  // sent by the last action, in order
};

}  // namespace cais::sim
