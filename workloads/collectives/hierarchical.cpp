// Hierarchical: inside the nodes, then across them, then inside again (Mikami et al. 2018,
// "Massively distributed SGD: ImageNet/ResNet-50 training in a flash", its 2D-torus all-reduce; the
// hierarchical all-reduce of Horovod).
//
// An all-reduce of g members in each of m nodes, all phases as rings:
//
//     node 0   0 - 1 - 2         1  reduce-scatter in the node: g - 1 steps of S / g
//              |   |   |         2  all-reduce across nodes among members of the same number in
//     node 1   3 - 4 - 5            their node, all g of them at once: 2 (m - 1) steps of S / n
//              |   |   |         3  all-gather in the node: g - 1 steps of S / g
//     node 2   6 - 7 - 8
//
// As many bytes as a ring in all, but only (m - 1) / m S / g of them twice through a member's
// network port, and 2 (g - 1) + 2 (m - 1) latencies instead of 2 (g m - 1):
//
//     T = T_rs(g, S) + T_ar(m, S / g) + T_ag(g, S)
//
// Reduce-scatter and all-gather alone are the first and the last half of it. A member starts a
// phase as soon as it has its own part, whatever the others do: inbox 0 is for messages from its
// node, inbox 1 for those from others. In one node this is the ring.

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "workloads/collectives/collective.hpp"
#include "workloads/collectives/rules.hpp"

namespace fourfold {
namespace {

std::optional<std::string> refuse(const CollectiveCall& call) {
    if (auto reason = refuse_call(call)) return reason;
    if (call.kind == CollectiveKind::all_to_all || call.kind == CollectiveKind::broadcast) {
        return fmt::format("hierarchical does all_reduce, reduce_scatter and all_gather, not {}",
                           name_of(call.kind));
    }
    if (call.members > 1 && (call.per_node <= 1 || call.members % call.per_node != 0)) {
        return "hierarchical needs several members in every node, and as many in each";
    }
    return std::nullopt;
}

// How many steps each phase has.
struct Phases {
    std::uint32_t scatter, across, gather;
    [[nodiscard]] bool is_across(std::uint32_t k) const {
        return k >= scatter && k - scatter < across;
    }
    [[nodiscard]] std::uint32_t steps() const { return scatter + across + gather; }
};
Phases phases_of(CollectiveKind kind, std::uint32_t inside, std::uint32_t nodes) {
    const std::uint32_t in_node = inside - 1;
    const std::uint32_t across = nodes - 1;
    if (kind == CollectiveKind::reduce_scatter) return {in_node, across, 0};
    if (kind == CollectiveKind::all_gather) return {0, across, in_node};
    return {in_node, 2 * across, in_node};
}

std::uint32_t nodes_of(const StepPlan& plan) { return plan.chunks; }

Phases phases_of(const StepPlan& plan) {
    return phases_of(kind_of(plan), plan.per_node, nodes_of(plan));
}

// Inside a node a message has a piece for every node.
Bytes message_bytes(const StepPlan& plan, bool across) {
    return across ? piece_of(plan) : piece_of(plan) * nodes_of(plan);
}

std::uint32_t right_of(const StepPlan& plan, std::uint32_t member, bool across) {
    if (across) return member_after(member, plan.per_node, plan.members);
    const bool last = member % plan.per_node == plan.per_node - 1;
    return last ? member - (plan.per_node - 1) : member + 1;
}

StepPlan make_plan(const CollectiveCall& call) {
    StepPlan plan = plan_of(call, ceil_div(call.bytes, call.members));
    plan.chunks = call.members / call.per_node;
    return plan;
}

std::uint32_t count(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t /*member*/) {
    return phases_of(plan).steps();
}

Step step(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t member, std::uint32_t k) {
    const Phases phases = phases_of(plan);
    const bool across = phases.is_across(k);
    Step step{.to = right_of(plan, member, across), .bytes = message_bytes(plan, across)};
    step.inbox = across ? 1 : 0;
    if (k == 0) return step;
    // All that came so far on the way of the step before.
    if (phases.is_across(k - 1)) {
        step.wait_inbox = 1;
        step.arrived = k - phases.scatter;
    } else {
        step.arrived = k <= phases.scatter ? k : k - phases.across;
    }
    return step;
}

// Every step sends what the step before brought. The two edges of a member are links of their own.
Duration alone(const CollectiveCall& call, HopFinder hop) {
    const StepPlan plan = make_plan(call);
    const Phases phases = phases_of(plan);
    struct Edge {
        std::uint32_t to;
        Hop hop;
        Duration free_at;
    };
    std::vector<Edge> edges[2];  // inside, across; by sender
    for (const bool across : {false, true}) {
        if ((across ? nodes_of(plan) : plan.per_node) == 1) continue;
        for (std::uint32_t member = 0; member < plan.members; ++member) {
            const std::uint32_t to = right_of(plan, member, across);
            edges[across].push_back({to, hop(member, to, message_bytes(plan, across)), {}});
        }
    }
    std::vector<Duration> arrived(plan.members), before;
    for (std::uint32_t k = 0; k < phases.steps(); ++k) {
        before = arrived;
        for (std::uint32_t member = 0; member < plan.members; ++member) {
            Edge& edge = edges[phases.is_across(k)][member];
            edge.free_at = add(std::max(edge.free_at, before[member]), edge.hop.serialise);
            arrived[edge.to] = add(edge.free_at, edge.hop.latency);
        }
    }
    return std::ranges::max(arrived);
}

Duration closed_form(const CollectiveCall& call, const EqualLinks& links) {
    const StepPlan plan = make_plan(call);
    const Phases phases = phases_of(plan);
    const auto ring = [&](std::uint32_t steps, bool across) {
        return repeat(port_phase(1, message_bytes(plan, across), links), steps);
    };
    return add(add(ring(phases.scatter, false), ring(phases.across, true)),
               ring(phases.gather, false));
}

}  // namespace

extern const Algorithm hierarchical_algorithm = {
    .name = "hierarchical",
    .summary = "rings inside the nodes and across them: few bytes and latencies on the network",
    .rule = {.pace = Pace::eager, .count = count, .step = step},
    .refuse = refuse,
    .plan = make_plan,
    .alone = alone,
    .closed_form = closed_form,
};

}  // namespace fourfold
