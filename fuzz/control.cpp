// fuzz/control.cpp — controllers and the machines that they command, under any list of operations:
// orders and answers that are lost, doubled and late, switches that are lost and found, controllers
// that follow each other while the old ones go on. Whatever happens, an epoch is one thing (P15):
// that begin it begin at the same seqs and with the same switches, and no rank begins it before
// every rank has left the ones before.
#include <map>
#include <vector>

#include "base/check.hpp"
#include "core/control/controller.hpp"
#include "core/control/member.hpp"
#include "fuzz/operations.hpp"

using namespace cais;
using control::Answer;
using control::Order;
using Deed = control::Response::Deed;

namespace {

constexpr std::uint16_t ranks = 3;
constexpr std::uint32_t machines = 3;
constexpr std::size_t lanes = 2;
constexpr std::size_t operations_max = 400;
constexpr std::size_t controllers_max = 4;
constexpr std::size_t mail_max = 200;
constexpr SessionId session(1);

class Bench {
 public:
  explicit Bench(fuzz::Operations in)
      : in_(in), ranks_(ranks, control::RankMember(Epoch(1))), switches_(machines) {
    for (control::SwitchMember& each : switches_) each.open(session, Epoch(1));
    take_over();
  }

  void run() {
    for (std::size_t i = 0; i < operations_max && !in_.done(); ++i) step();
  }

 private:
  struct Begun {
    std::vector<Seq> from;
    std::vector<control::TreeNumber> servers;
    bool operator==(const Begun&) const = default;
  };

  void step() {
    control::Controller& controller =
        controllers_[in_.below(static_cast<std::uint32_t>(controllers_.size()))];
    const control::SwitchNumber machine(in_.below(machines));
    switch (in_.below(8)) {
      case 0:
        now_ += std::chrono::milliseconds(in_.byte());
        if (controller.deadline() <= now_) controller.timeout(now_);
        break;
      case 1:
        if (in_.below(4) != 0) break;
        switches_[machine.value] = control::SwitchMember();
        controller.switch_lost(now_, machine, in_.below(4));
        break;
      case 2:
        if (in_.below(4) != 0) break;
        controller.switch_found(now_, machine, in_.below(4));
        break;
      case 3:
        if (in_.below(8) == 0 && controllers_.size() < controllers_max) take_over();
        break;
      default:
        deliver();
    }
    gather();
  }

  void take_over() {
    control::Controller& controller =
        controllers_.emplace_back(control::Lease(controllers_.size() + 1));
    for (std::uint32_t m = 0; m < machines; ++m) {
      controller.switch_found(now_, control::SwitchNumber(m), 0);
    }
    const control::SessionSpec spec{
        session,
        Epoch(1),
        ranks,
        {{control::SwitchNumber(0), control::SwitchNumber(1)}, {control::SwitchNumber(2)}},
        std::vector<control::TreeNumber>(lanes)};
    CAIS_CHECK(controller.adopt(now_, spec).ok());
  }

  void gather() {
    for (control::Controller& controller : controllers_) {
      for (Order order; controller.poll(order);) {
        if (orders_.size() < mail_max) orders_.push_back(order);
      }
      for (control::Event event; controller.poll_event(event);) {
      }
    }
  }

  /// Any order or answer that is under way, which may come again.
  void deliver() {
    const bool an_answer = in_.below(2) == 0;
    const std::size_t count = an_answer ? answers_.size() : orders_.size();
    if (count == 0) return;
    const std::size_t which = in_.byte() % count;
    const bool stays = in_.below(8) == 0;
    if (an_answer) {
      const Answer answer = answers_[which].second;
      const std::size_t to = answers_[which].first;
      if (!stays) answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(which));
      return controllers_[to].receive(now_, answer);
    }
    const Order order = orders_[which];
    if (!stays) orders_.erase(orders_.begin() + static_cast<std::ptrdiff_t>(which));
    obey(order);
  }

  void obey(const Order& order) {
    const bool to_rank = order.to.is(control::Node::Kind::rank);
    control::Response response =
        to_rank ? ranks_[order.to.number].take(order) : switches_[order.to.number].take(order);
    if (to_rank && response.deed == Deed::begin) begins(order);
    if (!response.answer) return;
    if (to_rank && response.answer->kind == Answer::Kind::fenced) {
      for (std::size_t l = 0; l < lanes; ++l) response.answer->unsettled.push_back(Seq(in_.byte()));
    }
    if (answers_.size() < mail_max) answers_.emplace_back(order.lease.value - 1, *response.answer);
  }

  /// A switch may begin what is given up before any rank does.
  void begins(const Order& order) {
    const Begun begun{order.from, order.servers};
    CAIS_CHECK(begun_.try_emplace(order.epoch, begun).first->second == begun);
    for (const control::RankMember& each : ranks_) CAIS_CHECK(each.epoch() >= order.epoch);
  }

  fuzz::Operations in_;
  Instant now_{};
  std::vector<control::Controller> controllers_;  // by lease
  std::vector<control::RankMember> ranks_;
  std::vector<control::SwitchMember> switches_;
  std::vector<Order> orders_;
  std::vector<std::pair<std::size_t, Answer>> answers_;
  std::map<Epoch, Begun> begun_;  // by ranks
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bench(fuzz::Operations(data, size)).run();
  return 0;
}
