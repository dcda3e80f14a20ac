// P15, P17, P19, P20: the controller's orders, one after the other.
#include "core/control/controller.hpp"

#include <gtest/gtest.h>

namespace cais::control {
namespace {

using Kind = Order::Kind;

constexpr SessionId session{7};
const std::vector<std::vector<SwitchNumber>> two_switches{{SwitchNumber(0)}, {SwitchNumber(1)}};
const std::vector<TreeNumber> a_lane_each{TreeNumber(0), TreeNumber(1)};

class ControllerTest : public testing::Test {
 protected:
  ControllerTest() {
    for (const std::uint32_t machine : {0u, 1u}) {
      controller_.switch_found(now_, SwitchNumber(machine), 1);
    }
    EXPECT_TRUE(controller_.open({session, Epoch(1), 2, two_switches, a_lane_each}).ok());
  }

  /// Its orders, sorted by whom they are for.
  std::map<Node, Order> orders() {
    std::map<Node, Order> all;
    for (Order order; controller_.poll(order);) all[order.to] = order;
    return all;
  }
  void answer(const Order& order, Answer::Kind kind, std::vector<Seq> unsettled = {}) {
    controller_.receive(
        now_, {kind, order.lease, order.session, order.epoch, order.to, std::move(unsettled), {}});
  }
  template <typename What>
  std::optional<What> event() {
    Event event;
    if (!controller_.poll_event(event) || !std::holds_alternative<What>(event)) return {};
    return std::get<What>(event);
  }

  Instant now_{};
  Controller controller_{Lease(1), std::chrono::milliseconds(10)};
  const Node rank0_ = node(Rank(0)), rank1_ = node(Rank(1));
  const Node switch0_ = node(SwitchNumber(0)), switch1_ = node(SwitchNumber(1));
};

TEST_F(ControllerTest, TakesASessionToTheSwitchThatLives) {
  controller_.switch_lost(now_, SwitchNumber(0), 1);
  auto fences = orders();
  ASSERT_EQ(fences.size(), 3u);  // both ranks, and the switch that lives
  EXPECT_FALSE(fences.contains(switch0_));
  for (const auto& [to, order] : fences) {
    EXPECT_EQ(order.kind, Kind::fence);
    EXPECT_EQ(order.epoch, Epoch(2));
  }
  EXPECT_FALSE(controller_.serves(session));
  answer(fences[switch1_], Answer::Kind::fenced);
  answer(fences[rank0_], Answer::Kind::fenced, {Seq(8), Seq(0xffffffff)});
  EXPECT_TRUE(orders().empty());  // before all are fenced nothing begins
  answer(fences[rank1_], Answer::Kind::fenced, {Seq(5), Seq(1)});

  auto begins = orders();
  ASSERT_EQ(begins.size(), 1u);  // switches before ranks
  const Order at_switch = begins[switch1_];
  EXPECT_EQ(at_switch.kind, Kind::begin);
  EXPECT_EQ(at_switch.from, (std::vector<Seq>{Seq(5), Seq(0xffffffff)}));  // serial arithmetic
  EXPECT_EQ(at_switch.servers, (std::vector<TreeNumber>{TreeNumber(1), TreeNumber(1)}));
  answer(at_switch, Answer::Kind::begun);
  begins = orders();
  ASSERT_EQ(begins.size(), 2u);
  answer(begins[rank0_], Answer::Kind::begun);
  EXPECT_FALSE(event<Resumed>());
  answer(begins[rank1_], Answer::Kind::begun);
  const auto resumed = event<Resumed>();
  ASSERT_TRUE(resumed);
  EXPECT_EQ(resumed->epoch, Epoch(2));
  EXPECT_TRUE(controller_.serves(session));
  EXPECT_EQ(controller_.deadline(), never);
}

TEST_F(ControllerTest, RepeatsWhatIsNotAnswered) {
  controller_.switch_lost(now_, SwitchNumber(0), 1);
  auto fences = orders();
  answer(fences[rank0_], Answer::Kind::fenced, {Seq(0), Seq(0)});
  ASSERT_EQ(controller_.deadline(), now_ + std::chrono::milliseconds(10));
  now_ = controller_.deadline();
  controller_.timeout(now_);
  fences = orders();
  EXPECT_EQ(fences.size(), 2u);
  EXPECT_FALSE(fences.contains(rank0_));
}

TEST_F(ControllerTest, WaitsForASwitchWhenNoneIsLeft) {
  controller_.switch_lost(now_, SwitchNumber(0), 1);
  controller_.switch_lost(now_, SwitchNumber(1), 1);
  auto fences = orders();
  answer(fences[rank0_], Answer::Kind::fenced, {Seq(0), Seq(0)});
  answer(fences[rank1_], Answer::Kind::fenced, {Seq(0), Seq(0)});
  EXPECT_TRUE(event<Stranded>());
  EXPECT_EQ(controller_.deadline(), never);
  controller_.switch_found(now_, SwitchNumber(0), 2);
  auto begins = orders();
  ASSERT_TRUE(begins.contains(switch0_));
  EXPECT_EQ(begins[switch0_].kind, Kind::begin);
}

/// It was started anew before anybody saw that it was gone: what it had is lost all the same.
TEST_F(ControllerTest, ASwitchThatIsFoundInAnotherLifeWasLost) {
  controller_.switch_found(now_, SwitchNumber(1), 1);  // no news
  EXPECT_TRUE(orders().empty());
  controller_.switch_found(now_, SwitchNumber(1), 2);
  EXPECT_EQ(orders().at(rank0_).epoch, Epoch(2));
}

TEST_F(ControllerTest, TheEndOfAnEarlierLifeIsNoNews) {
  controller_.switch_lost(now_, SwitchNumber(1), 0);
  EXPECT_TRUE(orders().empty());
  EXPECT_TRUE(controller_.serves(session));
}

TEST_F(ControllerTest, ASecondLossBeginsAnotherEpoch) {
  controller_.switch_lost(now_, SwitchNumber(0), 1);
  auto fences = orders();
  answer(fences[switch1_], Answer::Kind::fenced);
  for (const Node& rank : {rank0_, rank1_}) {
    answer(fences[rank], Answer::Kind::fenced, {Seq(3), Seq(3)});
  }
  const auto begins = orders();
  controller_.switch_lost(now_, SwitchNumber(1), 1);
  EXPECT_EQ(orders().at(rank1_).epoch, Epoch(3));
  answer(begins.at(switch1_), Answer::Kind::begun);  // too late
  EXPECT_TRUE(orders().empty());
}

TEST_F(ControllerTest, CountsOnWhereAnotherControllerHasBegunTheEpoch) {
  controller_.switch_lost(now_, SwitchNumber(0), 1);
  auto fences = orders();
  Answer ahead{Answer::Kind::ahead, Lease(1), session, Epoch(4), rank0_, {}, {}};
  controller_.receive(now_, ahead);
  EXPECT_EQ(orders().at(rank0_).epoch, Epoch(5));
}

TEST_F(ControllerTest, FallsSilentWhenANewerOneHasSpoken) {
  controller_.switch_lost(now_, SwitchNumber(0), 1);
  const auto fences = orders();
  controller_.receive(now_, {Answer::Kind::stale, Lease(2), session, Epoch(2), rank0_, {}, {}});
  const auto by = event<Superseded>();
  ASSERT_TRUE(by);
  EXPECT_EQ(by->by, Lease(2));
  EXPECT_EQ(controller_.deadline(), never);
  controller_.switch_lost(now_, SwitchNumber(1), 1);
  EXPECT_TRUE(orders().empty());
}

TEST_F(ControllerTest, ADeadRankEndsTheSessionForAllWithTheSameWords) {
  controller_.rank_lost(now_, session, Rank(1), "rank 1 (host 'b', process 7, op 12)");
  auto fails = orders();
  ASSERT_EQ(fails.size(), 1u);
  EXPECT_EQ(fails[rank0_].kind, Kind::fail);
  EXPECT_EQ(fails[rank0_].why, "rank 1 (host 'b', process 7, op 12) has died");
  answer(fails[rank0_], Answer::Kind::failed);
  const auto failed = event<Failed>();
  ASSERT_TRUE(failed);
  auto closes = orders();
  ASSERT_EQ(closes.size(), 2u);
  EXPECT_EQ(closes[switch0_].kind, Kind::close);
  answer(closes[switch0_], Answer::Kind::closed);
  EXPECT_FALSE(event<Closed>());
  answer(closes[switch1_], Answer::Kind::closed);
  EXPECT_TRUE(event<Closed>());
  EXPECT_TRUE(controller_.open({session, Epoch(9), 1, two_switches, a_lane_each}).ok());
}

TEST_F(ControllerTest, ASwitchThatDiesWhileItClosesIsNotWaitedFor) {
  controller_.close(now_, session);
  const auto closes = orders();
  answer(closes.at(switch0_), Answer::Kind::closed);
  controller_.switch_lost(now_, SwitchNumber(1), 1);
  EXPECT_TRUE(event<Closed>());
}

TEST_F(ControllerTest, ARankThatCannotGoOnEndsTheSession) {
  controller_.switch_lost(now_, SwitchNumber(0), 1);
  auto fences = orders();
  answer(fences[switch1_], Answer::Kind::fenced);
  for (const Node& rank : {rank0_, rank1_}) {
    answer(fences[rank], Answer::Kind::fenced, {Seq(3), Seq(3)});
  }
  answer(orders().at(switch1_), Answer::Kind::begun);
  const auto begins = orders();
  Answer no{Answer::Kind::refused, Lease(1), session, Epoch(2), rank0_, {}, "nothing is kept"};
  controller_.receive(now_, no);
  EXPECT_NE(orders().at(rank1_).why.find("nothing is kept"), std::string::npos);
}

/// An epoch that came again would let old packets in.
TEST(Controller, EndsASessionThatHasUsedUpItsEpochs) {
  Controller controller(Lease(1));
  controller.switch_found({}, SwitchNumber(0), 1);
  ASSERT_TRUE(controller.open({session, Epoch(0xffff), 1, two_switches, {TreeNumber(0)}}).ok());
  controller.switch_lost({}, SwitchNumber(0), 1);
  Order order;
  ASSERT_TRUE(controller.poll(order));
  EXPECT_EQ(order.kind, Kind::fail);
  EXPECT_EQ(order.why, "the session has used up its epochs");
}

TEST_F(ControllerTest, RefusesWhatIsNoSession) {
  const SessionSpec right{SessionId(8), Epoch(1), 2, two_switches, a_lane_each};
  const auto refuses = [&](const SessionSpec& spec, const std::string& why) {
    const Result<void> opened = controller_.open(spec);
    ASSERT_FALSE(opened.ok()) << why;
    EXPECT_NE(opened.error().message.find(why), std::string::npos) << opened.error().message;
  };
  SessionSpec wrong = right;
  wrong.session = session;
  refuses(wrong, "open already");
  for (const std::uint16_t ranks : {std::uint16_t{0}, std::uint16_t{65}}) {
    wrong = right;
    wrong.ranks = ranks;
    refuses(wrong, "1 to 64 ranks");
  }
  wrong = right;
  wrong.servers.clear();
  refuses(wrong, "no lanes");
  wrong = right;
  wrong.servers[1] = TreeNumber(2);
  refuses(wrong, "2 trees, numbered from 0, and none of them is 2");
  wrong = right;
  wrong.fallback = TreeNumber(9);
  refuses(wrong, "none of them is 9");
  wrong = right;
  wrong.trees[1].clear();
  refuses(wrong, "a tree without switches");
  wrong = right;
  wrong.trees[1].push_back(SwitchNumber(0));
  refuses(wrong, "switch 0 has two places");
  EXPECT_TRUE(controller_.open(right).ok());
}

/// P9: a tree serves while all its switches live; when one dies the others are fenced with the
/// ranks, and what they had goes to another tree, or waits for that one.
TEST(Controller, ATreeServesWhileAllItsSwitchesLive) {
  Controller controller(Lease(1));
  std::map<Node, Order> orders;
  const auto take_orders = [&] {
    orders.clear();
    for (Order order; controller.poll(order);) orders[order.to] = order;
  };
  const auto answer_all = [&](Answer::Kind kind) {
    take_orders();
    for (const auto& [to, order] : orders) {
      std::vector<Seq> unsettled;
      if (to.is(Node::Kind::rank)) unsettled.emplace_back(5);
      controller.receive({}, {kind, Lease(1), session, order.epoch, to, unsettled, {}});
    }
  };
  const auto at = [](std::uint32_t machine) { return node(SwitchNumber(machine)); };
  for (const std::uint32_t machine : {0u, 1u, 2u}) {
    controller.switch_found({}, SwitchNumber(machine), 1);
  }
  const std::vector<std::vector<SwitchNumber>> trees{{SwitchNumber(0), SwitchNumber(1)},
                                                     {SwitchNumber(2), SwitchNumber(3)}};
  ASSERT_TRUE(controller.open({session, Epoch(1), 1, trees, {TreeNumber(0)}}).ok());
  controller.switch_lost({}, SwitchNumber(2), 1);  // of no tree that serves
  take_orders();
  EXPECT_TRUE(orders.empty());

  controller.switch_lost({}, SwitchNumber(1), 1);
  answer_all(Answer::Kind::fenced);
  EXPECT_TRUE(orders.contains(at(0)));
  EXPECT_FALSE(orders.contains(at(1)));
  Event event;
  ASSERT_TRUE(controller.poll_event(event));
  EXPECT_TRUE(std::holds_alternative<Stranded>(event));
  controller.switch_found({}, SwitchNumber(3), 1);  // half of the other tree
  take_orders();
  EXPECT_TRUE(orders.empty());
  controller.switch_found({}, SwitchNumber(2), 2);
  answer_all(Answer::Kind::begun);
  ASSERT_EQ(orders.size(), 2u);
  for (const std::uint32_t machine : {2u, 3u}) {
    EXPECT_EQ(orders.at(at(machine)).servers, std::vector<TreeNumber>{TreeNumber(1)});
  }
  answer_all(Answer::Kind::begun);
  EXPECT_TRUE(orders.contains(node(Rank(0))));
  EXPECT_TRUE(controller.serves(session));
}

/// P18: without a switch the session goes on at a rank, and back when there is one again.
TEST(Controller, FallsBackToARankWhileNoSwitchLives) {
  Controller controller(Lease(1));
  const Node rank = node(Rank(0)), box = node(SwitchNumber(0)), embedded = node(SwitchNumber(1));
  const auto next = [&](Order::Kind kind, const Node& to) {
    Order order{};
    while (controller.poll(order) && order.to != to) {
    }
    EXPECT_EQ(order.kind, kind);
    EXPECT_EQ(order.to, to);
    return order;
  };
  const auto answer = [&](const Order& order, Answer::Kind kind, std::vector<Seq> unsettled) {
    controller.receive({}, {kind, Lease(1), session, order.epoch, order.to, unsettled, {}});
  };
  controller.switch_found({}, SwitchNumber(0), 1);
  ASSERT_TRUE(
      controller.open({session, Epoch(1), 1, two_switches, {TreeNumber(0)}, TreeNumber(1)}).ok());
  controller.switch_lost({}, SwitchNumber(0), 1);
  answer(next(Kind::fence, rank), Answer::Kind::fenced, {Seq(7)});
  const Order placed = next(Kind::begin, embedded);
  EXPECT_EQ(placed.servers, std::vector<TreeNumber>{TreeNumber(1)});
  answer(placed, Answer::Kind::begun, {});
  answer(next(Kind::begin, rank), Answer::Kind::begun, {});
  Event event;
  ASSERT_TRUE(controller.poll_event(event));
  ASSERT_TRUE(std::holds_alternative<FellBack>(event));
  EXPECT_EQ(std::get<FellBack>(event).from, std::vector<Seq>{Seq(7)});

  controller.switch_found({}, SwitchNumber(0), 2);
  const Order left = next(Kind::fence, embedded);
  EXPECT_EQ(left.epoch, Epoch(3));
  answer(left, Answer::Kind::fenced, {});
  answer({Kind::fence, Lease(1), 0, session, Epoch(3), rank, {}, {}, {}}, Answer::Kind::fenced,
         {Seq(9)});
  EXPECT_EQ(next(Kind::begin, box).from, std::vector<Seq>{Seq(9)});
}

TEST(Controller, TakesOverByAnEpochThatIsNewerThanAll) {
  Controller controller(Lease(2));
  controller.switch_found({}, SwitchNumber(0), 1);
  ASSERT_TRUE(controller.adopt({}, {session, Epoch(3), 1, two_switches, a_lane_each}).ok());
  Order order;
  ASSERT_TRUE(controller.poll(order));
  EXPECT_EQ(order.kind, Kind::fence);
  EXPECT_EQ(order.epoch, Epoch(4));
  EXPECT_EQ(order.lease, Lease(2));
}

}  // namespace
}  // namespace cais::control
