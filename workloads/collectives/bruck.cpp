// Bruck: log2 n rounds for any number of members (Bruck, Ho, Kipnis, Upfal and Weathersby 1997,
// "Efficient algorithms for all-to-all communications in multiport message-passing systems", the
// one-port case).
//
// All-to-all: a block for the member d after this one travels in the rounds of the 1 bits of d, by
// 2^k in round k, together with all others that have that bit. A block is sent up to log2 n times,
// S / 2 from every member in every round, so that this is for small blocks.
//
// All-gather: in round k a member sends all that it holds to the one 2^k before it; what they hold
// doubles, and the last round fills up the rest. No byte is sent twice, whatever n.
//
//     n = 5, round 0   0->1  1->2  2->3  3->4  4->0    blocks for 1 and 3 after: 2
//            round 1   0->2  1->3  2->4  3->0  4->1    blocks for 2 and 3 after: 2
//            round 2   0->4  1->0  2->1  3->2  4->3    blocks for 4 after: 1
//
//     T = ceil(log2 n) latency + S / 2 log2(n) / rate (all-to-all, n = 2^k)
//     T = ceil(log2 n) latency + (n - 1) / n S / rate (all-gather)

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "workloads/collectives/collective.hpp"
#include "workloads/collectives/rules.hpp"

namespace fourfold {
namespace {

std::optional<std::string> refuse(const CollectiveCall& call) {
    if (auto reason = refuse_call(call)) return reason;
    if (call.kind == CollectiveKind::all_to_all || call.kind == CollectiveKind::all_gather) {
        return std::nullopt;
    }
    return fmt::format("bruck does all_to_all and all_gather, not {}", name_of(call.kind));
}

std::uint32_t rounds_of(std::uint32_t members) {
    return static_cast<std::uint32_t>(std::bit_width(members - 1));
}

// Blocks in a member's message of a round.
std::uint32_t blocks_in(CollectiveKind kind, std::uint32_t members, std::uint32_t round) {
    const std::uint32_t distance = std::uint32_t{1} << round;
    if (kind == CollectiveKind::all_gather) return std::min(distance, members - distance);
    // Of 0 .. n - 1, those with this bit: half of all whole periods, and the end of the last one.
    const std::uint32_t rest = members % (2 * distance);
    return members / (2 * distance) * distance + (rest > distance ? rest - distance : 0);
}

StepPlan make_plan(const CollectiveCall& call) {
    return plan_of(call, ceil_div(call.bytes, call.members));
}

std::uint32_t count(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t /*member*/) {
    return rounds_of(plan.members);
}

Step step(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t member, std::uint32_t k) {
    const std::uint32_t n = plan.members;
    const std::uint32_t distance = std::uint32_t{1} << k;
    Step step{.to = member_after(member, distance, n),
              .from = member_after(member, n - distance, n),
              .bytes = piece_of(plan) * blocks_in(kind_of(plan), n, k)};
    if (kind_of(plan) == CollectiveKind::all_gather) std::swap(step.to, step.from);
    return step;
}

constexpr StepRule rule = {.pace = Pace::rendezvous, .count = count, .step = step};

Duration alone(const CollectiveCall& call, HopFinder hop) {
    return rounds_path(rule, make_plan(call), hop);
}

Duration closed_form(const CollectiveCall& call, const EqualLinks& links) {
    const Bytes piece = ceil_div(call.bytes, call.members);
    Duration time{};
    for (std::uint32_t round = 0; round < rounds_of(call.members); ++round) {
        const Bytes bytes = piece * blocks_in(call.kind, call.members, round);
        time = add(time, port_phase(1, bytes, links));
    }
    return time;
}

}  // namespace

extern const Algorithm bruck_algorithm = {
    .name = "bruck",
    .summary = "log2 rounds for any number of members: small all-to-alls, and all-gathers",
    .rule = rule,
    .refuse = refuse,
    .plan = make_plan,
    .alone = alone,
    .closed_form = closed_form,
};

}  // namespace fourfold
