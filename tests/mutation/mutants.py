"""The deliberate faults: each takes one thing out of the protocol that it cannot do without.

A mutant names the clause that it breaks, the file, the text in it (which must occur exactly once) and
what stands there instead. Simulator or model checker must find every one (mutation_test.py).
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    clause: str
    file: str
    text: str
    instead: str


SWITCH = "src/core/switching/"
AGENT = "src/core/agent/"
CONTROL = "src/core/control/"

MUTANTS = [
    # The switch: slots.
    Mutant(
        "no_bitmap_check", "P5", SWITCH + "contribute.cpp",
        "if (slot.holds(arrival.seq()) && slot.has(arrival.rank())) {",
        "if (false) {",
    ),
    Mutant(
        "old_contribution_opens_a_slot", "P5", SWITCH + "contribute.cpp",
        "if (ahead < 0) return Drop::stale_seq;",
        "",
    ),
    Mutant(
        "half_the_slots", "P5", SWITCH + "session.cpp",
        "slots(std::size_t{2} * config.window_fragments)",
        "slots(std::size_t{1} * config.window_fragments)",
    ),
    Mutant(
        "recycled_too_early", "P6", SWITCH + "contribute.cpp",
        "slot.seq - arrival.session->config.window_fragments;",
        "slot.seq - 1;",
    ),
    Mutant(
        "never_recycled", "P6", SWITCH + "contribute.cpp",
        "if (old.state != Slot::State::finished || old.seq != settled_by_all) return;",
        "return;",
    ),
    Mutant(
        "serial_comparison_forgets_the_wrap", "P6", SWITCH + "repeat.cpp",
        "if (!before(arrival.seq(), progress.end)) progress.end",
        "if (arrival.seq().value >= progress.end.value) progress.end",
    ),
    Mutant(
        "progress_stops_at_a_filled_gap", "P6", SWITCH + "repeat.cpp",
        "while (before(progress.next_missing, progress.end) && has(progress.next_missing)) {",
        "while (false) {",
    ),
    Mutant(
        "kept_contributions_leak", "P20", SWITCH + "contribute.cpp",
        "lane.drop_all(old);",
        "",
    ),
    Mutant(
        "results_leak", "P20", SWITCH + "contribute.cpp",
        "if (old.result != CellPool::none) lane.cells.release(old.result);",
        "",
    ),
    # The switch: repeats and questions.
    Mutant(
        "repeat_is_not_answered", "P7", SWITCH + "repeat.cpp",
        "const RankSet asker = only(arrival.child);\n"
        "  const nir::Plan& plan = session.programs[slot.program].plan;\n",
        "const RankSet asker = only(arrival.child);\n"
        "  const nir::Plan& plan = session.programs[slot.program].plan;\n"
        "  if (slot.state == Slot::State::finished) return Drop::none;\n",
    ),
    Mutant(
        "unfinished_slot_is_called_done", "P7", SWITCH + "repeat.cpp",
        "} else if (slot.state == Slot::State::open) {\n    send_waiting(slot, arrival, stamp);",
        "} else if (slot.state == Slot::State::open) {\n    send_done(slot, arrival, asker);",
    ),
    Mutant(
        "question_about_a_missing_contribution_is_not_answered", "P7", SWITCH + "repeat.cpp",
        "send_nak(arrival, arrival.seq(), 1);",
        "",
    ),
    Mutant(
        "who_lacks_nothing_gets_no_done", "P10", SWITCH + "repeat.cpp",
        "} else if (!answered) {\n    send_done(slot, arrival, asker);",
        "} else if (!answered) {",
    ),
    Mutant(
        "waiting_names_who_has_come", "P16", SWITCH + "transmit.cpp",
        "arrival.session->members & ~slot.contributed);",
        "slot.contributed);",
    ),
    # The switch: sums and payloads.
    Mutant(
        "sum_in_order_of_arrival", "P8", SWITCH + "contribute.cpp",
        "(*program.reducer)({&output, 1}, {inputs, count}, program.elements);",
        "std::swap(inputs[0], *std::find(inputs, inputs + count, arrival.payload.data()));\n"
        "    (*program.reducer)({&output, 1}, {inputs, count}, program.elements);",
    ),
    Mutant(
        "one_contribution_twice", "P8", SWITCH + "contribute.cpp",
        "(*program.reducer)({&output, 1}, {inputs, count}, program.elements);",
        "inputs[0] = arrival.payload.data();\n"
        "    (*program.reducer)({&output, 1}, {inputs, count}, program.elements);",
    ),
    Mutant(
        "sum_goes_to_who_owns_nothing_of_it", "P8", SWITCH + "contribute.cpp",
        "if (targets != 0) send_result(slot, arrival, targets);",
        "if (targets != 0) send_result(slot, arrival, session.children);",
    ),
    Mutant(
        "who_gets_no_sum_gets_no_done", "P8", SWITCH + "contribute.cpp",
        "send_done(slot, arrival, session.children & ~targets);\n}\n\n/// P10",
        "}\n\n/// P10",
    ),
    Mutant(
        "done_before_all_contributed", "P10", SWITCH + "contribute.cpp",
        "if (full) send_done(slot, arrival, session.children & ~targets);",
        "send_done(slot, arrival, session.children & ~targets);",
    ),
    Mutant(
        "payload_to_ranks_without_a_place", "P10", SWITCH + "contribute.cpp",
        "targets = session.children_above(entitled & ~arrival.below) & session.present(slot);",
        "targets = session.children_above(entitled & ~arrival.below);",
    ),
    Mutant(
        "payload_back_to_its_sender", "P10", SWITCH + "contribute.cpp",
        "targets = session.children_above(entitled & ~arrival.below) & session.present(slot);",
        "targets = session.children_above(entitled) & session.present(slot);",
    ),
    Mutant(
        "late_rank_gets_no_earlier_payloads", "P10", SWITCH + "contribute.cpp",
        "if ((entitled & arrival.below) != 0 && (contributed_before & arrival.below) == 0) {",
        "if (false) {",
    ),
    Mutant(
        "every_payload_says_finished", "P10", SWITCH + "transmit.cpp",
        "slot.state == Slot::State::finished ? wire::flag_finished : std::uint8_t{0};",
        "wire::flag_finished;",
    ),
    Mutant(
        "no_payload_says_finished", "P10", SWITCH + "transmit.cpp",
        "slot.state == Slot::State::finished ? wire::flag_finished : std::uint8_t{0};",
        "std::uint8_t{0};",
    ),
    Mutant(
        "dones_merge_across_a_gap", "P8", SWITCH + "transmit.cpp",
        "last->header.lane == arrival.lane->lane &&\n"
        "      last->header.seq + last->header.chunk == slot.seq) {",
        "last->header.lane == arrival.lane->lane) {",
    ),
    # The switch: what it refuses.
    Mutant(
        "descriptors_are_not_compared", "P12", SWITCH + "contribute.cpp",
        "if (arrival.header.descriptor != slot.descriptor) {\n    if (!arrival",
        "if (false) {\n    if (!arrival",
    ),
    Mutant(
        "mismatch_names_one_rank_twice", "P12", SWITCH + "contribute.cpp",
        "const wire::Mismatch mismatch{slot.first, arrival.rank(), slot.descriptor,",
        "const wire::Mismatch mismatch{arrival.rank(), arrival.rank(), slot.descriptor,",
    ),
    Mutant(
        "who_missed_the_refusal_never_hears_it", "P12", SWITCH + "repeat.cpp",
        "send_refusal(arrival, only(arrival.child));",
        "(void)arrival;",
    ),
    Mutant(
        "tag_is_not_checked_at_the_switch", "P13", SWITCH + "admit.cpp",
        "if (!wire::tag_is_right(bytes, session.config.keys, lane->position.round_of(header.seq))) {",
        "if (false) {",
    ),
    Mutant(
        "epoch_is_not_checked_at_the_switch", "P15", SWITCH + "admit.cpp",
        "if (header.epoch != session.config.epoch || session.fenced) return Drop::wrong_epoch;",
        "",
    ),
    # Trees: what goes up.
    Mutant(
        "partial_goes_up_before_all_contributed", "P9", SWITCH + "contribute.cpp",
        "  } else if (full) {\n    reduce(slot, arrival, program);",
        "  } else if (full || arrival.session->has_parent()) {\n    reduce(slot, arrival, program);",
    ),
    Mutant(
        "sum_is_finished_when_it_is_finished_here", "P9", SWITCH + "contribute.cpp",
        "if (session.has_parent()) return send_up(slot, arrival, session.name());",
        "if (session.has_parent()) {\n    slot.state = Slot::State::finished;\n"
        "    return send_up(slot, arrival, session.name());\n  }",
    ),
    Mutant(
        "done_before_it_is_finished_above", "P9", SWITCH + "contribute.cpp",
        "const bool full = session.complete(slot) && !session.has_parent();",
        "const bool full = session.complete(slot);",
    ),
    Mutant(
        "payloads_do_not_go_up", "P9", SWITCH + "contribute.cpp",
        "if (session.has_parent()) send_up(slot, arrival, arrival.rank());",
        "",
    ),
    Mutant(
        "partials_of_halves_are_rounded", "P8", SWITCH + "manage.cpp",
        ".output = place.has_parent ? partial_type(plan) : plan.dtype,",
        ".output = plan.dtype,",
    ),
    Mutant(
        "average_is_divided_at_each_level", "P8", SWITCH + "manage.cpp",
        ".op = averages && place.has_parent ? ReduceOp::sum : plan.reduce_op,",
        ".op = averages && false ? ReduceOp::sum : plan.reduce_op,",
    ),
    Mutant(
        "mismatch_is_not_told_above", "P12", SWITCH + "contribute.cpp",
        "if (session.has_parent() && !arrival.from_above) {",
        "if (false) {",
    ),
    # Trees: what comes down.
    Mutant(
        "old_result_for_a_recycled_slot", "P9", SWITCH + "tree.cpp",
        "if (!slot.holds(arrival.seq())) return Drop::stale_seq;",
        "",
    ),
    Mutant(
        "old_done_for_a_recycled_slot", "P9", SWITCH + "tree.cpp",
        "if (!slot.holds(arrival.seq() + i) || slot.state != Slot::State::open ||\n"
        "        slot.descriptor",
        "if (slot.state != Slot::State::open || slot.descriptor",
    ),
    Mutant(
        "payload_from_above_to_ranks_without_a_place", "P10", SWITCH + "tree.cpp",
        "told = session.children_above(entitled) & session.present(slot);",
        "told = session.children_above(entitled);",
    ),
    Mutant(
        "done_from_above_stays_here", "P9", SWITCH + "tree.cpp",
        "send_done(slot, arrival, session.children);",
        "",
    ),
    # Trees: repair.
    Mutant(
        "question_is_not_passed_up", "P7", SWITCH + "repeat.cpp",
        "ask_above(slot, arrival, 0, *stamp);",
        "",
    ),
    Mutant(
        "lost_payload_is_not_fetched_from_above", "P10", SWITCH + "repeat.cpp",
        "if (absent != 0 || (!answered && session.asks_above(slot))) {",
        "if (!answered && session.asks_above(slot)) {",
    ),
    Mutant(
        "answer_from_above_goes_to_another_child", "P16", SWITCH + "tree.cpp",
        "const Rank child = session.child_of[arrival.rank().value].name;",
        "const Rank child = session.name();",
    ),
    Mutant(
        "what_the_parent_lacks_is_not_repeated", "P7", SWITCH + "tree.cpp",
        "send_up_again(slot, arrival, named);",
        "",
    ),
    Mutant(
        "nak_from_above_is_not_heard", "P11", SWITCH + "tree.cpp",
        "news |= send_up_again(slot, arrival, arrival.session->members);",
        "news = true;",
    ),
    Mutant(
        "part_of_a_fragment_counts_as_all_of_it", "P11", SWITCH + "repeat.cpp",
        "return slot.holds(seq) && (arrival.below & ~slot.contributed) == 0;",
        "return slot.holds(seq) && (arrival.below & slot.contributed) != 0;",
    ),
    # The agent: what it sends.
    Mutant(
        "window_one_too_wide", "P1", AGENT + "transmit.cpp",
        "ahead >= config.window_fragments) return false;",
        "ahead > config.window_fragments) return false;",
    ),
    Mutant(
        "no_timer_for_the_first_fragment", "P2", AGENT + "transmit.cpp",
        "if (lane.deadline == never) lane.deadline = now + lane.rtt.rto(lane.backoff);",
        "",
    ),
    Mutant(
        "timer_stops_at_the_first_answer", "P2", AGENT + "receive.cpp",
        "lane.deadline = lane.waiting == 0 ? never : now + lane.rtt.rto(lane.backoff);",
        "lane.deadline = never;",
    ),
    Mutant(
        "round_trip_read_from_a_repeat", "P2", AGENT + "receive.cpp",
        "if (!fragment.repeated && (!fragment.asked() || fragment.arrived)) {",
        "if (true) {",
    ),
    Mutant(
        "timeout_forgets_the_wrap", "P2", AGENT + "recover.cpp",
        "while (count > 0 && before(lane.recover_from, lane.recover_end)) {",
        "while (count > 0 && lane.recover_from.value < lane.recover_end.value) {",
    ),
    Mutant(
        "timeout_recovers_four_fragments", "P2", AGENT + "recover.cpp",
        "if (fragment.lost || (fragment.asked() && !fragment.arrived)) {",
        "if (false) {",
    ),
    Mutant(
        "payloads_are_never_asked_for", "P2", AGENT + "recover.cpp",
        "fragment.finished ? Fragment::Due::want : Fragment::Due::question",
        "fragment.finished ? Fragment::Due::question : Fragment::Due::question",
    ),
    Mutant(
        "nak_is_not_heard", "P11", AGENT + "receive.cpp",
        "repeat_lost(lane, seq, Fragment::Due::contribution);",
        "",
    ),
    Mutant(
        "small_ops_all_in_the_first_lane", "seqs", AGENT + "agent.cpp",
        "const std::size_t first = op.plan.lanes == lanes ? 0 : number % lanes;",
        "const std::size_t first = 0;",
    ),
    # The agent: what it takes.
    Mutant(
        "result_from_before_the_window", "P3", AGENT + "receive.cpp",
        "(!lane.in_window(header.seq) || lane.at(header.seq).state == Fragment::State::settled)) {",
        "lane.at(header.seq).state == Fragment::State::settled) {",
    ),
    Mutant(
        "settled_before_all_contributed", "settled", AGENT + "receive.cpp",
        "if (fragment.finished && fragment.lacking == 0) settle(now, lane, header.seq);",
        "if (fragment.lacking == 0) settle(now, lane, header.seq);",
    ),
    Mutant(
        "settled_without_its_payloads", "settled", AGENT + "receive.cpp",
        "if (fragment->lacking == 0) {\n      settle",
        "if (true) {\n      settle",
    ),
    Mutant(
        "done_speaks_for_one_too_many", "P8", AGENT + "receive.cpp",
        "return std::min<std::uint32_t>(header.chunk, static_cast",
        "return std::min<std::uint32_t>(header.chunk + 1, static_cast",
    ),
    Mutant(
        "op_is_done_one_fragment_early", "I1", AGENT + "agent.cpp",
        "state.ops.push_back(Op{op, op.plan.fragments(), op.plan.fragments(), {}});",
        "state.ops.push_back("
        "Op{op, std::max(op.plan.fragments(), 2u) - 1, op.plan.fragments(), {}});",
    ),
    Mutant(
        "own_payload_is_forgotten", "P10", AGENT + "transmit.cpp",
        "if (to != from) std::memcpy(to, from, extent.bytes);",
        "(void)to, (void)from;",
    ),
    Mutant(
        "refusal_is_not_heard", "P12", AGENT + "receive.cpp",
        "case wire::Kind::mismatch:\n      return mismatch(lane, header, payload);",
        "case wire::Kind::mismatch:\n      return Outcome::stale;",
    ),
    Mutant(
        "refusal_names_another_op", "P12", AGENT + "receive.cpp",
        "if (!before(header.seq, lane.base) && before(header.seq, first)) "
        "number = lane.at(header.seq).op;",
        "",
    ),
    Mutant(
        "tag_is_not_checked_at_the_agent", "P13", AGENT + "receive.cpp",
        "if (!wire::tag_is_right(packet, config.keys, lane.position.round_of(header.seq))) {",
        "if (false) {",
    ),
    Mutant(
        "epoch_is_not_checked_at_the_agent", "P15", AGENT + "receive.cpp",
        "header.session != config.session || header.epoch != config.epoch ||",
        "header.session != config.session ||",
    ),
    # Epochs.
    Mutant(
        "fenced_agent_goes_on_taking", "P15", AGENT + "receive.cpp",
        "header.rank.value >= config.ranks || fenced) {",
        "header.rank.value >= config.ranks) {",
    ),
    Mutant(
        "fenced_agent_goes_on_sending", "P15", AGENT + "transmit.cpp",
        "if (refused || fenced) return false;",
        "if (refused) return false;",
    ),
    Mutant(
        "sum_is_added_as_a_contribution", "P17", SWITCH + "contribute.cpp",
        "if (slot.final != 0) {",
        "if (false) {",
    ),
    Mutant(
        "contribution_instead_of_the_sum", "P17", AGENT + "resume.cpp",
        "return fragment.applied && plan.combine == nir::Combine::reduce &&",
        "return false && plan.combine == nir::Combine::reduce &&",
    ),
    Mutant(
        "done_ops_are_not_kept", "P4", AGENT + "resume.cpp",
        "fragment.kept_at = of.kept.size();",
        "fragment.kept_at = 0;",
    ),
    Mutant(
        "a_window_is_kept_too_little", "P4", AGENT + "agent.cpp",
        "window((config.retains ? 2 : 1) * std::size_t{config.window_fragments}),",
        "window(std::size_t{config.window_fragments}),",
    ),
    Mutant(
        "fragment_is_counted_again", "P17", AGENT + "receive.cpp",
        "if (std::exchange(fragment.applied, true)) return;",
        "fragment.applied = true;",
    ),
    Mutant(
        "epoch_begins_where_the_first_rank_stands", "P17", CONTROL + "controller.cpp",
        "if (before(of_rank[l], least[l])) least[l] = of_rank[l];",
        "if (before(least[l], of_rank[l])) least[l] = of_rank[l];",
    ),
    Mutant(
        "slots_outlive_their_epoch", "P20", SWITCH + "manage.cpp",
        "  state_->forget_fragments(id);\n  for (auto& lane : session->lanes) lane.reset();",
        "  for (auto& lane : session->lanes) lane.reset();",
    ),
    Mutant(
        "older_lease_is_obeyed", "P15", CONTROL + "member.cpp",
        "if (lease < newest_) return false;",
        "",
    ),
    Mutant(
        "ranks_begin_before_all_are_fenced", "P15", CONTROL + "controller.cpp",
        "  session.awaited.erase(answer.from);\n  advance(now, session);",
        "  session.awaited.clear();\n  advance(now, session);",
    ),
    Mutant(
        "session_is_left_at_a_switch", "P20", CONTROL + "controller.cpp",
        "      return enter(now, session, Phase::closing, living(session, session.placed));",
        "      return enter(now, session, Phase::closing, {});",
    ),
    # Epochs of trees.
    Mutant(
        "tree_serves_without_one_of_its_switches", "P9", CONTROL + "controller.cpp",
        "return std::all_of(machines.begin(), machines.end(),",
        "return std::any_of(machines.begin(), machines.end(),",
    ),
    Mutant(
        "one_switch_of_a_tree_is_watched", "P15", CONTROL + "controller.cpp",
        "const bool serves = machines_of(session.spec, session.servers).contains(machine);",
        "const bool serves = *machines_of(session.spec, session.servers).begin() == machine;",
    ),
    Mutant(
        "epoch_that_another_has_begun_is_used_again", "P15", CONTROL + "controller.cpp",
        "return next_epoch(now, session, answer.epoch);",
        "return;",
    ),
    Mutant(
        "overtaken_order_is_obeyed", "P20", CONTROL + "member.cpp",
        "if (order.number <= last_) return {};",
        "",
    ),
    Mutant(
        "result_goes_up_as_a_partial", "P17", SWITCH + "tree.cpp",
        "if (slot.final != 0) entry.header.flags = wire::flag_final;  // P17",
        "",
    ),
    Mutant(
        "result_goes_up_as_long_as_a_partial", "P17", SWITCH + "transmit.cpp",
        "if (entry.up && slot.final == 0) bytes = program.output_bytes;",
        "if (entry.up) bytes = program.output_bytes;",
    ),
    Mutant(
        "parent_speaks_from_anywhere", "P13", SWITCH + "admit.cpp",
        "if (session.parent != port) return Drop::wrong_port;",
        "",
    ),
]
