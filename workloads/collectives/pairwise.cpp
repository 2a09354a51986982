// Pairwise exchange: n - 1 rounds, in each of which every member sends one block to one other and
// receives one, and goes on when both are done (Thakur, Rabenseifner and Gropp 2005, "Optimization
// of collective communication operations in MPICH": all-to-all and reduce-scatter
// of long messages). In round k members whose numbers differ in the bits of k + 1 are partners,
// where there are 2^k of them; else a member sends to the one k + 1 after it:
//
//     n = 4, round 0   0<->1  2<->3          n = 3, round 0   0->1  1->2  2->0
//            round 1   0<->2  1<->3                 round 1   0->2  1->0  2->1
//            round 2   0<->3  1<->2
//
//     T = (n - 1) (ceil(S / n) / rate + latency)
//
// The bytes of `direct` with a latency for every partner: the price of never having more than one
// message under way to a member, whatever the network and whoever is late.

#include <fmt/format.h>

#include <bit>

#include "workloads/collectives/collective.hpp"
#include "workloads/collectives/rules.hpp"

namespace fourfold {
namespace {

std::optional<std::string> refuse(const CollectiveCall& call) {
    if (auto reason = refuse_call(call)) return reason;
    if (call.kind == CollectiveKind::all_to_all || call.kind == CollectiveKind::reduce_scatter) {
        return std::nullopt;
    }
    return fmt::format(
        "pairwise does all_to_all and reduce_scatter, in which every member has a block for every "
        "other, not {}",
        name_of(call.kind));
}

StepPlan make_plan(const CollectiveCall& call) {
    return plan_of(call, ceil_div(call.bytes, call.members));
}

std::uint32_t count(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t /*member*/) {
    return plan.members - 1;
}

Step step(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t member, std::uint32_t k) {
    const std::uint32_t n = plan.members;
    const std::uint32_t distance = k + 1;
    if (std::has_single_bit(n)) {
        const std::uint32_t partner = member ^ distance;
        return {.to = partner, .from = partner, .bytes = piece_of(plan)};
    }
    return {.to = member_after(member, distance, n),
            .from = member_after(member, n - distance, n),
            .bytes = piece_of(plan)};
}

constexpr StepRule rule = {.pace = Pace::rendezvous, .count = count, .step = step};

Duration alone(const CollectiveCall& call, HopFinder hop) {
    return rounds_path(rule, make_plan(call), hop);
}

Duration closed_form(const CollectiveCall& call, const EqualLinks& links) {
    return repeat(port_phase(1, ceil_div(call.bytes, call.members), links), call.members - 1);
}

}  // namespace

extern const Algorithm pairwise_algorithm = {
    .name = "pairwise",
    .summary = "one partner after the other: least bytes, a latency for every member",
    .rule = rule,
    .refuse = refuse,
    .plan = make_plan,
    .alone = alone,
    .closed_form = closed_form,
};

}  // namespace fourfold
