// Halving and doubling: members exchange in pairs, with half as much or twice as much in every
// round (Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations
// in MPICH"; Rabenseifner 2004, "Optimization of collective reduction operations").
//
// Reduce-scatter by recursive halving: partners swap the halves of what they still hold, so that
// each sums up one; after log2 n rounds a member holds one piece of n. All-gather by recursive
// doubling is the same played backwards, and an all-reduce is both:
//
//     round 0   0<->1   2<->3    S / 2          T = 2 log2(n) latency + 2 (n - 1) / n S / rate
//     round 1   0<->2   1<->3    S / 4              on equal links, for n = 2^k
//     round 2   0<->2   1<->3    S / 4
//     round 3   0<->1   2<->3    S / 2
//
// As many bytes as a ring with log2 n latencies instead of n. The nearest members exchange most:
// that is free to choose in an all-reduce, and for members in rank order it keeps most bytes inside
// their node. Scattering and gathering alone, pieces must lie in rank order: the farthest exchange
// most.
//
// An all-reduce of other sizes is done by the largest power of two among them, as in MPICH: the
// first members with an even number hand their whole buffer to the next one, sit out, and get the
// result from it. That is two more rounds of S bytes.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "workloads/collectives/collective.hpp"
#include "workloads/collectives/rules.hpp"

namespace fourfold {
namespace {

std::optional<std::string> refuse(const CollectiveCall& call) {
    if (auto reason = refuse_call(call)) return reason;
    switch (call.kind) {
        case CollectiveKind::all_reduce:
            return std::nullopt;
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_gather:
            if (std::has_single_bit(call.members)) return std::nullopt;
            return fmt::format(
                "halving_doubling does reduce_scatter and all_gather of 2, 4, 8, ... members, not "
                "of {}",
                call.members);
        case CollectiveKind::all_to_all:
        case CollectiveKind::broadcast:
            break;
    }
    return fmt::format("halving_doubling does all_reduce, reduce_scatter and all_gather, not {}",
                       name_of(call.kind));
}

// Those that exchange. Each of the `extra` others is folded into one of them.
std::uint32_t core_of(std::uint32_t members) { return std::bit_floor(members); }

std::uint32_t exchanges_of(CollectiveKind kind, std::uint32_t members) {
    const auto levels = static_cast<std::uint32_t>(std::bit_width(members)) - 1;
    return kind == CollectiveKind::all_reduce ? 2 * levels : levels;
}

struct Exchange {
    std::uint32_t distance, pieces;
};
Exchange exchange(CollectiveKind kind, std::uint32_t members, std::uint32_t round) {
    if (kind == CollectiveKind::all_reduce) {  // the second half mirrors the first
        round = std::min(round, exchanges_of(kind, members) - 1 - round);
    }
    const std::uint32_t halved = core_of(members) >> (round + 1);
    const std::uint32_t doubled = std::uint32_t{1} << round;
    return {kind == CollectiveKind::reduce_scatter ? halved : doubled,
            kind == CollectiveKind::all_gather ? doubled : halved};
}

StepPlan make_plan(const CollectiveCall& call) {
    return plan_of(call, ceil_div(call.bytes, core_of(call.members)));
}

std::uint32_t count(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t /*member*/) {
    const bool folds = !std::has_single_bit(plan.members);
    return exchanges_of(kind_of(plan), plan.members) + (folds ? 2 : 0);
}

Step step(const StepPlan& plan, std::uint32_t channel, std::uint32_t member, std::uint32_t k) {
    const std::uint32_t extra = plan.members - core_of(plan.members);
    const bool in_fold = member < 2 * extra;
    const bool sits_out = in_fold && member % 2 == 0;
    const bool first = extra > 0 && k == 0;
    const bool last = extra > 0 && k + 1 == count(plan, channel, member);
    if (first || last) {
        if (!in_fold) return {};
        const std::uint32_t neighbour = member ^ 1;
        if (sits_out == last) return {.from = neighbour};
        return {.to = neighbour, .bytes = plan.bytes};
    }
    if (sits_out) return {};
    const auto [distance, pieces] = exchange(kind_of(plan), plan.members, extra > 0 ? k - 1 : k);
    const std::uint32_t place = (in_fold ? member / 2 : member - extra) ^ distance;
    const std::uint32_t partner = place < extra ? 2 * place + 1 : place + extra;
    return {.to = partner, .from = partner, .bytes = piece_of(plan) * pieces};
}

constexpr StepRule rule = {.pace = Pace::rendezvous, .count = count, .step = step};

Duration alone(const CollectiveCall& call, HopFinder hop) {
    return rounds_path(rule, make_plan(call), hop);
}

Duration closed_form(const CollectiveCall& call, const EqualLinks& links) {
    const Bytes piece = ceil_div(call.bytes, core_of(call.members));
    Duration time{};
    for (std::uint32_t round = 0; round < exchanges_of(call.kind, call.members); ++round) {
        const std::uint32_t pieces = exchange(call.kind, call.members, round).pieces;
        time = add(time, port_phase(1, piece * pieces, links));
    }
    const bool folds = !std::has_single_bit(call.members);
    return add(time, repeat(port_phase(1, call.bytes, links), folds ? 2 : 0));
}

}  // namespace

extern const Algorithm halving_doubling_algorithm = {
    .name = "halving_doubling",
    .summary = "pairs, with half or twice as much in each round: least bytes, few latencies",
    .rule = rule,
    .refuse = refuse,
    .plan = make_plan,
    .alone = alone,
    .closed_form = closed_form,
};

}  // namespace fourfold
