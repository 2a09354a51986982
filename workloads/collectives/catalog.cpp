#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "topology/check.hpp"
#include "topology/closest.hpp"
#include "workloads/collectives/collective.hpp"
#include "workloads/collectives/rules.hpp"

namespace fourfold {

#define ALGORITHM(name) extern const Algorithm name##_algorithm;
#include "workloads/collectives/catalog.def"
#undef ALGORITHM

namespace {

#define ALGORITHM(name) &name##_algorithm,
constexpr std::array all_algorithms = {
#include "workloads/collectives/catalog.def"
};
#undef ALGORITHM

// In the order of CollectiveKind.
constexpr std::array<std::string_view, 5> kind_names = {"all_reduce", "reduce_scatter",
                                                        "all_gather", "all_to_all", "broadcast"};

// What the port of some member must carry, whatever the algorithm: `times` * S / `parts` bytes. Of
// an all-reduce each member must send what others lack of its data and receive what it lacks of
// theirs, and the n members can do no better than share that (Patarasuk and Yuan 2009, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations", sec. 3).
struct PortShare {
    std::uint32_t times, parts;
};
PortShare port_share(CollectiveKind kind, std::uint32_t members) {
    switch (kind) {
        case CollectiveKind::all_reduce:
            return {2 * (members - 1), members};
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_gather:
        case CollectiveKind::all_to_all:
            return {members - 1, members};
        case CollectiveKind::broadcast:
            return {1, 1};
    }
    FOURFOLD_CHECK(false, "collective kind {}", static_cast<int>(kind));
}

}  // namespace

std::string_view name_of(CollectiveKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::span<const std::string_view> collective_kinds() { return kind_names; }

Result<CollectiveKind> find_collective_kind(std::string_view name) {
    const auto found = std::ranges::find(kind_names, name);
    if (found == kind_names.end()) return problem("", unknown("collective", name, kind_names));
    return static_cast<CollectiveKind>(found - kind_names.begin());
}

std::span<const Algorithm* const> algorithms() { return all_algorithms; }

Result<const Algorithm*> find_algorithm(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Algorithm* algorithm : all_algorithms) {
        if (algorithm->name == name) return algorithm;
        names.push_back(algorithm->name);
    }
    return problem("", unknown("algorithm", name, names));
}

const Algorithm& choose_algorithm(const CollectiveCall& call, HopFinder hop) {
    if (call.kind == CollectiveKind::all_to_all) return direct_algorithm;
    if (tree_algorithm.refuse(call)) return ring_algorithm;
    const bool tree = tree_algorithm.alone(call, hop) < ring_algorithm.alone(call, hop);
    return tree ? tree_algorithm : ring_algorithm;
}

// Rounded down and without padding, so that it is a bound whatever an algorithm pads and rounds.
Duration bandwidth_bound(const CollectiveCall& call, const EqualLinks& links) {
    if (call.members <= 1) return {};
    __extension__ using Wide = unsigned __int128;
    const PortShare share = port_share(call.kind, call.members);
    const Wide bytes =
        Wide{static_cast<std::uint64_t>(call.bytes.value)} * share.times / share.parts;
    const Wide time = bytes * Duration::period::den / static_cast<std::uint64_t>(links.rate.value);
    if (time > static_cast<std::uint64_t>(duration_limit.count())) return duration_limit;
    return add(Duration(static_cast<std::int64_t>(time)), links.latency);
}

double bus_factor(CollectiveKind kind, std::uint32_t members) {
    const PortShare share = port_share(kind, members);
    return static_cast<double>(share.times) / share.parts;
}

std::optional<std::string> refuse_call(const CollectiveCall& call) {
    if (call.members == 0) return "a collective needs at least 1 member";
    if (call.root >= call.members) {
        return fmt::format("root {} is none of the {} members, which count from 0", call.root,
                           call.members);
    }
    if (call.bytes.value < 0)
        return fmt::format("{} bytes are less than nothing", call.bytes.value);
    return std::nullopt;
}

StepPlan plan_of(const CollectiveCall& call, Bytes piece) {
    const auto bits = static_cast<std::uint64_t>(piece.value);
    StepPlan plan;
    plan.members = call.members;
    plan.per_node = call.per_node;
    plan.root = call.root;
    plan.bytes = call.bytes;
    plan.table = {static_cast<std::uint32_t>(call.kind), static_cast<std::uint32_t>(bits),
                  static_cast<std::uint32_t>(bits >> 32)};
    FOURFOLD_CHECK(plan.table.size() == plan_head);
    return plan;
}

// finish(m, k) = max(finish(m, k - 1), of each message of m in round k: the later finish(., k - 1)
// of its two ends + its time).
Duration rounds_path(const StepRule& rule, const StepPlan& plan, HopFinder hop) {
    FOURFOLD_CHECK(rule.pace == Pace::rendezvous && plan.channels == 1);
    std::vector<Duration> finish(plan.members), before;
    for (std::uint32_t round = 0; round < rule.count(plan, 0, 0); ++round) {
        before = finish;
        for (std::uint32_t member = 0; member < plan.members; ++member) {
            const Step step = rule.step(plan, 0, member, round);
            if (step.to == Step::nobody) continue;
            const Hop edge = hop(member, step.to, step.bytes);
            const Duration begin = std::max(before[member], before[step.to]);
            const Duration end = add(begin, add(edge.serialise, edge.latency));
            finish[member] = std::max(finish[member], end);
            finish[step.to] = std::max(finish[step.to], end);
        }
    }
    return std::ranges::max(finish);
}

void PortPhase::message(std::uint32_t from, std::uint32_t to, Hop hop) {
    sending_[from] = add(sending_[from], hop.serialise);
    receiving_[to] = add(receiving_[to], hop.serialise);
    latency_ = std::max(latency_, hop.latency);
}

Duration PortPhase::time() const {
    return add(std::max(std::ranges::max(sending_), std::ranges::max(receiving_)), latency_);
}

}  // namespace fourfold
