// Tree: two binary trees over the same members, each for one half of the bytes (Sanders, Speck and
// Träff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction and scan"; NCCL's
// `tree`).
//
// A single binary tree leaves half of the ports idle: its leaves only send and its inner members
// receive twice what they send. In the second tree the parts are swapped, so that every member
// sends and receives as much as a port can. Both trees hang from the root; the others are numbered
// in order, so a member's parent is its number with the lowest 1 bit cleared and the next higher
// bit set (if there is such a member). The second tree is the first with other members in its
// places: with 7 members, its mirror image (member r in place n - r; for even n in place r - 1):
//
//     first tree       0                 second tree    0
//                      |                                |
//                      4                                3
//                   /     \                          /     \       .
//                  2       6                        1       5
//                 / \     /                          \     / \     .
//                1   3   5                            2   4   6
//
// An all-reduce sums up the trees, then the result goes down; a broadcast only goes down. Each half
// is cut into chunks, which follow each other through the tree in rounds. In a round a member sends
// at most one message and receives at most one, so no two messages ever wait for a port:
//
// - An edge is used in every other round. Two edges conflict if they have the same sender (a member
//   and its two parents) or the same receiver (a member and its two children). Edges and conflicts
//   form paths, and cycles in which both kinds alternate and which are therefore even: two colours
//   do, one for even and one for odd rounds.
// - The edge above a member carries chunk j in round offset + 2 j, with `offset` the least of its
//   colour that is later than the edges below it.
// - Down is the film of up played backwards.
//
// So an all-reduce takes at most 4 chunks + 4 log2 n rounds with S / (2 chunks) bytes each: for
// many chunks nearly 2 S / rate. That is as much as a ring, with a latency for each round instead
// of for each member.

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "topology/check.hpp"
#include "workloads/collectives/collective.hpp"
#include "workloads/collectives/rules.hpp"

namespace fourfold {
namespace {

constexpr std::uint32_t nobody = Step::nobody;

std::optional<std::string> refuse(const CollectiveCall& call) {
    if (call.kind != CollectiveKind::all_reduce && call.kind != CollectiveKind::broadcast) {
        return "tree does all_reduce and broadcast, in which all members get the same; where each "
               "gets its own part, ring and direct send fewer bytes";
    }
    return refuse_call(call);
}

// log2 of the members, rounded up.
std::uint32_t levels_of(std::uint32_t members) {
    return static_cast<std::uint32_t>(std::bit_width(members - 1));
}

// Chunks in each tree. With k chunks, L levels and D = rate * latency, a call takes about
// (4 k + 4 L)(S / 2 k + D) / rate, least for k = sqrt(L S / 2 D). The number must not follow the
// links (a what-if of their speed would change the algorithm too), so D is that of a port of 25
// GB/s with 10 us to the next, 250 kB. The minimum is flat: at half or twice that D the terms that
// k trades for each other add up to 6 % more.
std::uint32_t chunks_of(const CollectiveCall& call) {
    constexpr std::int64_t twice_delay_bytes = 512 * 1024;
    constexpr std::int64_t most = 256;  // keeps the messages of a call within reason
    constexpr std::int64_t enough = std::int64_t{1} << 40;  // bytes that take `most` in any case
    const std::int64_t squared =
        std::min(call.bytes.value, enough) * levels_of(call.members) / twice_delay_bytes;
    std::int64_t chunks = 1;
    while (chunks < most && (chunks + 1) * (chunks + 1) <= squared) ++chunks;
    return static_cast<std::uint32_t>(chunks);
}

// ---- The trees. A `rank` is a member counted from the root; a `place` is where it is in a tree.

std::uint32_t place_of(std::uint32_t tree, std::uint32_t rank, std::uint32_t n) {
    if (tree == 0 || rank == 0) return rank;
    if (n % 2 == 1) return n - rank;
    return rank == 1 ? n - 1 : rank - 1;
}

std::uint32_t rank_at(std::uint32_t tree, std::uint32_t place, std::uint32_t n) {
    if (tree == 0 || place == 0) return place;
    if (n % 2 == 1) return n - place;
    return place == n - 1 ? 1 : place + 1;
}

// As NCCL's `ncclGetBtree`. Requires: place > 0.
std::uint32_t place_above(std::uint32_t place, std::uint32_t n) {
    const std::uint32_t lowest = place & (~place + 1);
    const std::uint32_t cleared = place ^ lowest;
    const std::uint32_t above = cleared | lowest << 1;
    return above < n ? above : cleared;
}

// The edge above a rank in a tree: 2 * rank + tree.
struct Edges {
    std::vector<std::uint32_t> parent;                // a rank
    std::vector<std::uint32_t> offset;                // the round of the first chunk
    std::vector<std::array<std::uint32_t, 2>> below;  // by rank: edges of its children, or nobody
};

// Alternating colours along each path or cycle of conflicts.
std::vector<std::uint8_t> colours_of(const Edges& edges, std::uint32_t n) {
    constexpr std::uint8_t none = 2;
    std::vector<std::uint8_t> colours(2 * std::size_t{n}, none);
    std::vector<std::uint32_t> open;
    for (std::uint32_t first = 2; first < 2 * n; ++first) {
        if (colours[first] != none) continue;
        colours[first] = 0;
        open.push_back(first);
        while (!open.empty()) {
            const std::uint32_t edge = open.back();
            open.pop_back();
            const auto& siblings = edges.below[edges.parent[edge]];
            const std::uint32_t sibling = siblings[0] == edge ? siblings[1] : siblings[0];
            const std::uint32_t same_sender = edge ^ 1;
            for (const std::uint32_t other : {same_sender, sibling}) {
                if (other == nobody) continue;
                FOURFOLD_CHECK(colours[other] != colours[edge], "{} members, edges {} and {}", n,
                               edge, other);
                if (colours[other] != none) continue;
                colours[other] = colours[edge] ^ 1;
                open.push_back(other);
            }
        }
    }
    return colours;
}

Edges build_edges(std::uint32_t n) {
    Edges edges{.parent = std::vector<std::uint32_t>(2 * std::size_t{n}, nobody),
                .offset = std::vector<std::uint32_t>(2 * std::size_t{n}, 0),
                .below = std::vector<std::array<std::uint32_t, 2>>(n, {nobody, nobody})};
    for (std::uint32_t edge = 2; edge < 2 * n; ++edge) {
        const std::uint32_t tree = edge % 2;
        const std::uint32_t parent = rank_at(tree, place_above(place_of(tree, edge / 2, n), n), n);
        edges.parent[edge] = parent;
        auto& below = edges.below[parent];
        FOURFOLD_CHECK(below[1] == nobody, "{} members: rank {} has three children", n, parent);
        (below[0] == nobody ? below[0] : below[1]) = edge;
    }
    const std::vector<std::uint8_t> colours = colours_of(edges, n);
    // Places with a lower lowest bit are further down.
    for (std::uint32_t bit = 1; bit < n; bit <<= 1) {
        for (std::uint32_t place = bit; place < n; place += 2 * bit) {
            for (const std::uint32_t tree : {0U, 1U}) {
                const std::uint32_t rank = rank_at(tree, place, n);
                std::uint32_t earliest = 0;
                for (const std::uint32_t child : edges.below[rank]) {
                    if (child == nobody || child % 2 != tree) continue;
                    earliest = std::max(earliest, edges.offset[child] + 1);
                }
                const std::uint32_t edge = 2 * rank + tree;
                edges.offset[edge] = earliest + ((earliest ^ colours[edge]) & 1);
            }
        }
    }
    return edges;
}

// ---- The plan. After its head: the rounds of one phase; then for each member its two edges up and
// its two edges down, each as the partner (or nobody) and the offset.

constexpr std::size_t rounds_at = plan_head;
constexpr std::size_t members_at = plan_head + 1;
constexpr std::size_t words_per_member = 8;
constexpr std::size_t down_at = 4;  // of those

StepPlan make_plan(const CollectiveCall& call) {
    const std::uint32_t n = call.members;
    const std::uint32_t chunks = chunks_of(call);
    StepPlan plan = plan_of(call, ceil_div(ceil_div(call.bytes, 2), chunks));
    plan.chunks = chunks;
    if (n == 1) {
        plan.table.push_back(0);
        return plan;
    }
    const std::uint32_t root = call.kind == CollectiveKind::broadcast ? call.root : 0;
    const Edges edges = build_edges(n);
    plan.table.push_back(std::ranges::max(edges.offset) + 2 * (chunks - 1) + 1);
    plan.table.resize(members_at + words_per_member * n, nobody);
    for (std::uint32_t edge = 2; edge < 2 * n; ++edge) {
        const std::uint32_t child = member_after(edge / 2, root, n);
        const std::uint32_t parent = member_after(edges.parent[edge], root, n);
        const std::size_t slot = edges.below[edges.parent[edge]][0] == edge ? 0 : 1;
        const std::size_t up = members_at + words_per_member * child + 2 * (edge % 2);
        const std::size_t down = members_at + words_per_member * parent + down_at + 2 * slot;
        plan.table[up] = parent;
        plan.table[down] = child;
        plan.table[up + 1] = plan.table[down + 1] = edges.offset[edge];
    }
    return plan;
}

bool is_active(const StepPlan& plan, std::size_t entry, std::uint32_t round) {
    if (plan.table[entry] == nobody || round < plan.table[entry + 1]) return false;
    const std::uint32_t since = round - plan.table[entry + 1];
    return since % 2 == 0 && since / 2 < plan.chunks;
}

std::uint32_t partner(const StepPlan& plan, std::size_t entries, std::uint32_t round) {
    if (is_active(plan, entries, round)) return plan.table[entries];
    return is_active(plan, entries + 2, round) ? plan.table[entries + 2] : nobody;
}

std::uint32_t count(const StepPlan& plan, std::uint32_t /*channel*/, std::uint32_t /*member*/) {
    const std::uint32_t rounds = plan.table[rounds_at];
    return kind_of(plan) == CollectiveKind::all_reduce ? 2 * rounds : rounds;
}

Step step(const StepPlan& plan, std::uint32_t channel, std::uint32_t member, std::uint32_t k) {
    const bool up = kind_of(plan) == CollectiveKind::all_reduce && k < plan.table[rounds_at];
    const std::uint32_t round = up ? k : count(plan, channel, member) - 1 - k;
    const std::size_t entries = members_at + words_per_member * member;
    const std::uint32_t parent = partner(plan, entries, round);
    const std::uint32_t child = partner(plan, entries + down_at, round);
    Step step{.to = up ? parent : child, .from = up ? child : parent};
    if (step.to != nobody) step.bytes = piece_of(plan);
    return step;
}

// ---- Time

struct Path {
    std::uint32_t child, parent, offset;
    Duration up, down;  // of one message
};

// finish(r, k) = max(finish(r, k - 1), of each message of r in round k: the later finish(., k - 1)
// of its two ends + its time). O(n * rounds).
Duration longest_path(const StepPlan& plan, const std::vector<Path>& paths) {
    const std::uint32_t rounds = plan.table[rounds_at];
    std::vector<Duration> finish(plan.members), before;
    const auto play = [&](std::uint32_t round, Duration Path::*time) {
        before = finish;
        for (const Path& path : paths) {
            if (round < path.offset || (round - path.offset) % 2 != 0 ||
                (round - path.offset) / 2 >= plan.chunks) {
                continue;
            }
            const Duration end = add(std::max(before[path.child], before[path.parent]), path.*time);
            finish[path.child] = std::max(finish[path.child], end);
            finish[path.parent] = std::max(finish[path.parent], end);
        }
    };
    if (kind_of(plan) == CollectiveKind::all_reduce) {
        for (std::uint32_t round = 0; round < rounds; ++round) play(round, &Path::up);
    }
    for (std::uint32_t round = rounds; round-- > 0;) play(round, &Path::down);
    return std::ranges::max(finish);
}

Duration alone(const CollectiveCall& call, HopFinder hop) {
    if (call.members <= 1) return {};
    const StepPlan plan = make_plan(call);
    const Bytes bytes = piece_of(plan);
    const auto time_of = [&](std::uint32_t from, std::uint32_t to) {
        const Hop found = hop(from, to, bytes);
        return add(found.serialise, found.latency);
    };
    std::vector<Path> paths;
    for (std::uint32_t member = 0; member < call.members; ++member) {
        for (const std::size_t tree : {0U, 1U}) {
            const std::size_t entry = members_at + words_per_member * member + 2 * tree;
            const std::uint32_t parent = plan.table[entry];
            if (parent == nobody) continue;
            const bool reduces = call.kind == CollectiveKind::all_reduce;
            paths.push_back({member, parent, plan.table[entry + 1],
                             reduces ? time_of(member, parent) : Duration{},
                             time_of(parent, member)});
        }
    }
    return longest_path(plan, paths);
}

// All messages take as long, so only the longest chain of messages has to be counted. Once there
// are as many chunks as levels it has one in every round (the test tries all sizes); with fewer,
// some trees have rounds in which nobody on it is busy.
Duration closed_form(const CollectiveCall& call, const EqualLinks& links) {
    if (call.members <= 1) return {};
    const StepPlan plan = make_plan(call);
    std::int64_t chain = count(plan, 0, 0);
    if (plan.chunks < levels_of(call.members)) {
        constexpr Duration one{1};
        chain = alone(call, [&](auto, auto, Bytes) { return Hop{one, {}}; }) / one;
    }
    return repeat(add(piece_of(plan) / links.rate, links.latency), chain);
}

}  // namespace

extern const Algorithm tree_algorithm = {
    .name = "tree",
    .summary = "a double binary tree: nearly the bytes of a ring, latencies as log2 of the members",
    .rule = {.pace = Pace::rendezvous, .count = count, .step = step},
    .refuse = refuse,
    .plan = make_plan,
    .alone = alone,
    .closed_form = closed_form,
};

}  // namespace fourfold
