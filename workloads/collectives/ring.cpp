// Ring: everybody sends to the right neighbour and receives from the left one (Patarasuk and Yuan
// 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations").
//
// An all-reduce of n members cuts the buffer into n pieces. In n - 1 steps each piece goes round
// and is summed (reduce-scatter), in n - 1 more the sums go round (all-gather). All edges work in
// every step, nobody is in charge, and a member sends 2 (n - 1) / n of the buffer, however many
// there are:
//
//     0 -> 1 -> 2 -> 3        step k of member r forwards what step k - 1 of member r - 1 brought
//     ^              |
//     +--------------+        T = 2 (n - 1) (ceil(S / n) / rate + latency) on equal links
//
// The price is a latency per step, 2 (n - 1) of them.
//
// A group with g members in each of several nodes uses the ports of all of them: g rings at once,
// each with S / g of the bytes, ring j entering every node at member j and leaving at member j - 1.
// Two nodes of 3, ring 1:    -> 1 -> 2 -> 0 --> 4 -> 5 -> 3 --> (back to 1)
//
// All-to-all takes n - 1 steps round the ring and each step drops one block at its target.
// Broadcast is the ring cut open before the root: a chain that passes n pieces on as they come.

#include <algorithm>
#include <vector>

#include "topology/check.hpp"
#include "workloads/collectives/collective.hpp"
#include "workloads/collectives/rules.hpp"

namespace fourfold {
namespace {

std::uint32_t rings_of(const CollectiveCall& call) {
    const bool spans_nodes =
        call.per_node > 1 && call.members > call.per_node && call.members % call.per_node == 0;
    return spans_nodes ? call.per_node : 1;
}

Bytes ring_piece(const CollectiveCall& call) {
    return ceil_div(ceil_div(call.bytes, rings_of(call)), call.members);
}

// Place of a member on a ring, from 0; along the ring it grows by one.
std::uint32_t place_of(const StepPlan& plan, std::uint32_t ring, std::uint32_t member) {
    if (plan.channels == 1) return member;
    const std::uint32_t g = plan.channels;
    const std::uint32_t device = member % g;
    return member - device + (device >= ring ? device - ring : device + g - ring);
}

std::uint32_t member_at(const StepPlan& plan, std::uint32_t ring, std::uint32_t place) {
    if (plan.channels == 1) return place;
    const std::uint32_t g = plan.channels;
    const std::uint32_t device = place % g;
    return place - device + (device + ring < g ? device + ring : device + ring - g);
}

std::uint32_t right_of(const StepPlan& plan, std::uint32_t ring, std::uint32_t member) {
    if (plan.channels == 1) return member_after(member, 1, plan.members);
    return member_at(plan, ring, member_after(place_of(plan, ring, member), 1, plan.members));
}

// How far down the chain of a broadcast a member is from the root.
std::uint32_t links_from_root(const StepPlan& plan, std::uint32_t ring, std::uint32_t member) {
    const std::uint32_t place = place_of(plan, ring, member);
    const std::uint32_t root = place_of(plan, ring, plan.root);
    return place >= root ? place - root : place + plan.members - root;
}

std::optional<std::string> refuse(const CollectiveCall& call) { return refuse_call(call); }

StepPlan make_plan(const CollectiveCall& call) {
    StepPlan plan = plan_of(call, ring_piece(call));
    plan.channels = rings_of(call);
    plan.chunks = call.members;
    return plan;
}

// Steps of a member that sends at all.
std::uint32_t steps_of(CollectiveKind kind, std::uint32_t members) {
    if (members == 1) return 0;
    switch (kind) {
        case CollectiveKind::all_reduce:
            return 2 * (members - 1);
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_gather:
        case CollectiveKind::all_to_all:
            return members - 1;
        case CollectiveKind::broadcast:
            return members;
    }
    FOURFOLD_CHECK(false, "collective kind {}", static_cast<int>(kind));
}

std::uint32_t count(const StepPlan& plan, std::uint32_t channel, std::uint32_t member) {
    const CollectiveKind kind = kind_of(plan);
    const bool last = kind == CollectiveKind::broadcast &&
                      links_from_root(plan, channel, member) == plan.members - 1;
    return last ? 0 : steps_of(kind, plan.members);
}

Step step(const StepPlan& plan, std::uint32_t channel, std::uint32_t member, std::uint32_t k) {
    Step step{.to = right_of(plan, channel, member), .bytes = piece_of(plan), .arrived = k};
    const CollectiveKind kind = kind_of(plan);
    if (kind == CollectiveKind::all_to_all) step.bytes = step.bytes * (plan.members - 1 - k);
    if (kind == CollectiveKind::broadcast) step.arrived = member == plan.root ? 0 : k + 1;
    return step;
}

Sent sum(const StepPlan& plan, std::uint32_t channel, std::uint32_t member) {
    const std::uint32_t steps = count(plan, channel, member);
    const std::int64_t pieces = kind_of(plan) == CollectiveKind::all_to_all
                                    ? std::int64_t{plan.members} * steps / 2
                                    : std::int64_t{steps};
    return {right_of(plan, channel, member), steps, piece_of(plan) * pieces};
}

// ---- Time on unequal edges

__extension__ using Wide = __int128;

Duration saturate(Wide time) {
    return time > duration_limit.count() ? duration_limit
                                         : Duration(static_cast<std::int64_t>(time));
}

// The longest path through `steps` equal steps. From step to step a path stays on its edge (which
// was busy for `serialise`) or follows the message to the next (`serialise` and `latency`). So it
// runs through a window of consecutive edges and spends the steps left over on the slowest of them:
//
//     T = max over windows of 1 <= length <= steps edges of
//             sum(serialise + latency) + (steps - length) * max serialise
//
// A window may go round more than once. For each distinct `serialise` s, take the windows that hold
// an edge with it (if the window holds a slower one too, this is a path, only not the longest):
// sum(serialise + latency - s) + steps * s, the best of which a sliding minimum over the starts
// finds. O(edges * distinct serialise).
Duration longest_path(std::span<const Hop> edges, std::uint32_t steps) {
    std::vector<Duration> distinct;
    for (const Hop& edge : edges) distinct.push_back(edge.serialise);
    std::ranges::sort(distinct);
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());

    const std::size_t turns_length = edges.size() + steps;  // any window begins in the first turn
    std::vector<Wide> sum_before(turns_length + 1);
    std::vector<std::size_t> starts(turns_length);  // a queue: sums rise from its head to its end
    Wide longest = 0;
    for (const Duration slowest : distinct) {
        std::size_t head = 0;
        std::size_t tail = 0;
        std::size_t next_start = 0;
        for (std::size_t end = 0; end < turns_length; ++end) {
            const Hop& edge = edges[end % edges.size()];
            sum_before[end + 1] =
                sum_before[end] + edge.serialise.count() + edge.latency.count() - slowest.count();
            if (edge.serialise == slowest) {  // now windows may start anywhere up to here
                for (; next_start <= end; ++next_start) {
                    while (tail > head && sum_before[starts[tail - 1]] >= sum_before[next_start]) {
                        --tail;
                    }
                    starts[tail++] = next_start;
                }
            }
            while (head < tail && starts[head] + steps <= end) ++head;
            if (head == tail) continue;
            longest = std::max(longest, sum_before[end + 1] - sum_before[starts[head]] +
                                            Wide{steps} * slowest.count());
        }
    }
    return saturate(longest);
}

// All-to-all: the same path, with messages that shrink from step to step.
Duration all_to_all_path(const StepPlan& plan, std::span<const std::uint32_t> ring, HopFinder hop) {
    const std::size_t n = ring.size();
    std::vector<Duration> start(n), free_at(n), arrival(n);
    Duration end{};
    for (std::uint32_t k = 0; k + 1 < plan.members; ++k) {
        const Bytes bytes = piece_of(plan) * (plan.members - 1 - k);
        for (std::size_t i = 0; i < n; ++i) start[i] = std::max(free_at[i], arrival[i]);
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t right = i + 1 < n ? i + 1 : 0;
            const Hop edge = hop(ring[i], ring[right], bytes);
            free_at[i] = add(start[i], edge.serialise);
            arrival[right] = add(free_at[i], edge.latency);
            end = std::max(end, arrival[right]);
        }
    }
    return end;
}

// Equal pieces down a chain: the first passes every edge, the others follow as the slowest lets
// them.
Duration chain_path(std::span<const Hop> chain, std::uint32_t pieces) {
    Duration first{};
    Duration slowest{};
    for (const Hop& edge : chain) {
        first = add(first, add(edge.serialise, edge.latency));
        slowest = std::max(slowest, edge.serialise);
    }
    return add(first, repeat(slowest, pieces - 1));
}

Duration alone(const CollectiveCall& call, HopFinder hop) {
    if (call.members <= 1) return {};
    const StepPlan plan = make_plan(call);
    Duration longest{};
    for (std::uint32_t j = 0; j < plan.channels; ++j) {
        std::vector<std::uint32_t> ring(plan.members);
        const std::uint32_t first =
            call.kind == CollectiveKind::broadcast ? place_of(plan, j, plan.root) : 0;
        for (std::uint32_t i = 0; i < plan.members; ++i) {
            ring[i] = member_at(plan, j, member_after(first, i, plan.members));
        }
        if (call.kind == CollectiveKind::all_to_all) {
            longest = std::max(longest, all_to_all_path(plan, ring, hop));
            continue;
        }
        std::vector<Hop> edges(plan.members);
        for (std::uint32_t i = 0; i < plan.members; ++i) {
            edges[i] = hop(ring[i], ring[member_after(i, 1, plan.members)], piece_of(plan));
        }
        const std::uint32_t steps = steps_of(call.kind, plan.members);
        const Duration path = call.kind == CollectiveKind::broadcast
                                  ? chain_path(std::span(edges).first(plan.members - 1), steps)
                                  : longest_path(edges, steps);
        longest = std::max(longest, path);
    }
    return longest;
}

// ---- The formula

// Several rings share their members' ports on equal links, and then the ports may be the limit.
Duration with_shared_ports(Duration one_ring, Bytes sent_on_ring, std::uint32_t rings,
                           const EqualLinks& links) {
    if (rings == 1) return one_ring;
    return std::max(one_ring, add(sent_on_ring * rings / links.rate, links.latency));
}

Duration closed_form(const CollectiveCall& call, const EqualLinks& links) {
    if (call.members <= 1) return {};
    const std::uint32_t n = call.members;
    const std::uint32_t rings = rings_of(call);
    const Bytes piece = ring_piece(call);
    const Duration serialise = piece / links.rate;
    const std::uint32_t steps = steps_of(call.kind, n);
    switch (call.kind) {
        case CollectiveKind::all_reduce:
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_gather:
            return with_shared_ports(repeat(add(serialise, links.latency), steps), piece * steps,
                                     rings, links);
        case CollectiveKind::all_to_all: {
            // n - 1 blocks, then n - 2, ... then 1: half of n (n - 1) in all.
            Duration time = repeat(links.latency, steps);
            for (std::uint32_t blocks = 1; blocks < n; ++blocks) {
                time = add(time, piece * blocks / links.rate);
            }
            return with_shared_ports(time, piece * (std::int64_t{n} * (n - 1) / 2), rings, links);
        }
        case CollectiveKind::broadcast:
            return with_shared_ports(
                add(repeat(add(serialise, links.latency), n - 1), repeat(serialise, n - 1)),
                piece * n, rings, links);
    }
    FOURFOLD_CHECK(false, "collective kind {}", static_cast<int>(call.kind));
}

}  // namespace

extern const Algorithm ring_algorithm = {
    .name = "ring",
    .summary = "right neighbours only: least bytes, a latency for every member",
    .rule = {.pace = Pace::eager, .count = count, .step = step, .sum = sum},
    .refuse = refuse,
    .plan = make_plan,
    .alone = alone,
    .closed_form = closed_form,
};

}  // namespace fourfold
