// Direct: every member exchanges its pieces with every other, without detour.
//
// An all-reduce has two phases. Each member is in charge of one piece of n: first everyone sends it
// their copies of that piece, then it sends the sum to everyone. As many bytes as a ring, and two
// latencies instead of 2 (n - 1), but n - 1 partners for each member: it needs a network that joins
// all alike. Members begin with their right neighbour and go round, so that in every step each
// receives one message (Thakur, Rabenseifner and Gropp 2005, "Optimization of collective
// communication operations in MPICH", sec. 3.3: all-to-all of long messages):
//
//     step 0   0->1  1->2  2->3  3->0           T = 2 ((n - 1) ceil(S / n) / rate + latency)
//     step 1   0->2  1->3  2->0  3->1
//     step 2   0->3  1->0  2->1  3->2
//
// A broadcast is the root's sends to each member in turn.

#include <algorithm>

#include "workloads/collectives/collective.hpp"
#include "workloads/collectives/rules.hpp"

namespace fourfold {
namespace {

std::optional<std::string> refuse(const CollectiveCall& call) { return refuse_call(call); }

Bytes message_bytes(const CollectiveCall& call) {
    return call.kind == CollectiveKind::broadcast ? call.bytes : ceil_div(call.bytes, call.members);
}

StepPlan make_plan(const CollectiveCall& call) { return plan_of(call, message_bytes(call)); }

std::uint32_t count(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t member) {
    const std::uint32_t others = plan.members - 1;
    if (kind_of(plan) == CollectiveKind::broadcast) return member == plan.root ? others : 0;
    return kind_of(plan) == CollectiveKind::all_reduce ? 2 * others : others;
}

Step step(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t member, std::uint32_t k) {
    const std::uint32_t others = plan.members - 1;
    const bool sums = k >= others;  // the second phase of an all-reduce
    const std::uint32_t distance = (sums ? k - others : k) + 1;
    return {.to = member_after(member, distance, plan.members),
            .bytes = piece_of(plan),
            .inbox = sums ? std::uint8_t{1} : std::uint8_t{0},
            .wait_inbox = 0,
            .arrived = sums ? others : 0};
}

Duration alone(const CollectiveCall& call, HopFinder hop) {
    if (call.members <= 1) return {};
    const Bytes bytes = message_bytes(call);
    PortPhase phase(call.members);
    for (std::uint32_t from = 0; from < call.members; ++from) {
        if (call.kind == CollectiveKind::broadcast && from != call.root) continue;
        for (std::uint32_t to = 0; to < call.members; ++to) {
            if (to != from) phase.message(from, to, hop(from, to, bytes));
        }
    }
    return repeat(phase.time(), call.kind == CollectiveKind::all_reduce ? 2 : 1);
}

Duration closed_form(const CollectiveCall& call, const EqualLinks& links) {
    if (call.members <= 1) return {};
    const Duration phase = port_phase(call.members - 1, message_bytes(call), links);
    return repeat(phase, call.kind == CollectiveKind::all_reduce ? 2 : 1);
}

}  // namespace

extern const Algorithm direct_algorithm = {
    .name = "direct",
    .summary = "every member to every other: least bytes, least latency, n - 1 partners",
    .rule = {.pace = Pace::eager, .count = count, .step = step},
    .refuse = refuse,
    .plan = make_plan,
    .alone = alone,
    .closed_form = closed_form,
};

}  // namespace fourfold
