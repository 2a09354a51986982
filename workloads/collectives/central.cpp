// Central: one member, the root, collects from all and answers all: a parameter server (Li et al.
// 2014, "Scaling distributed machine learning with the parameter server", with a single server).
//
//     1   2   3                                 1   2   3
//      \  |  /    all at once, through            ^ | ^
//       v v v     the root's one port             \ | /
//         0                                         0       T = 2 ((n - 1) S / rate + latency)
//
// It is here for comparison: its time grows with the number of members, while that of a ring does
// not. Nobody is in charge in a ring, and that is why it scales.

#include <algorithm>

#include "topology/check.hpp"
#include "workloads/collectives/collective.hpp"
#include "workloads/collectives/rules.hpp"

namespace fourfold {
namespace {

// Bytes of each message to the root and of each answer.
struct Sizes {
    Bytes collect, answer;
};
Sizes sizes_of(CollectiveKind kind, std::uint32_t members, Bytes whole, Bytes piece) {
    switch (kind) {
        case CollectiveKind::all_reduce:
            return {whole, whole};
        case CollectiveKind::reduce_scatter:
            return {whole, piece};
        case CollectiveKind::all_gather:
            return {piece, whole};
        case CollectiveKind::all_to_all: {  // a member's own block stays where it is
            const Bytes foreign = piece * (members - 1);
            return {foreign, foreign};
        }
        case CollectiveKind::broadcast:
            return {{}, whole};
    }
    FOURFOLD_CHECK(false, "collective kind {}", static_cast<int>(kind));
}

Sizes sizes_of(const CollectiveCall& call) {
    return sizes_of(call.kind, call.members, call.bytes, ceil_div(call.bytes, call.members));
}

bool collects(CollectiveKind kind) { return kind != CollectiveKind::broadcast; }

std::optional<std::string> refuse(const CollectiveCall& call) { return refuse_call(call); }

StepPlan make_plan(const CollectiveCall& call) {
    return plan_of(call, ceil_div(call.bytes, call.members));
}

std::uint32_t count(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t member) {
    if (member == plan.root) return plan.members - 1;
    return collects(kind_of(plan)) ? 1 : 0;
}

Step step(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t member, std::uint32_t k) {
    const CollectiveKind kind = kind_of(plan);
    const Sizes sizes = sizes_of(kind, plan.members, plan.bytes, piece_of(plan));
    if (member != plan.root) return {.to = plan.root, .bytes = sizes.collect};
    return {.to = member_after(member, k + 1, plan.members),
            .bytes = sizes.answer,
            .arrived = collects(kind) ? plan.members - 1 : 0};
}

Duration alone(const CollectiveCall& call, HopFinder hop) {
    if (call.members <= 1) return {};
    const Sizes sizes = sizes_of(call);
    PortPhase collect(call.members);
    PortPhase answer(call.members);
    for (std::uint32_t member = 0; member < call.members; ++member) {
        if (member == call.root) continue;
        if (collects(call.kind)) {
            collect.message(member, call.root, hop(member, call.root, sizes.collect));
        }
        answer.message(call.root, member, hop(call.root, member, sizes.answer));
    }
    return add(collect.time(), answer.time());
}

Duration closed_form(const CollectiveCall& call, const EqualLinks& links) {
    if (call.members <= 1) return {};
    const Sizes sizes = sizes_of(call);
    const Duration answer = port_phase(call.members - 1, sizes.answer, links);
    if (!collects(call.kind)) return answer;
    return add(port_phase(call.members - 1, sizes.collect, links), answer);
}

}  // namespace

extern const Algorithm central_algorithm = {
    .name = "central",
    .summary = "a parameter server: all send to the root, the root answers all; for comparison",
    .rule = {.pace = Pace::eager, .count = count, .step = step},
    .refuse = refuse,
    .plan = make_plan,
    .alone = alone,
    .closed_form = closed_form,
};

}  // namespace fourfold
