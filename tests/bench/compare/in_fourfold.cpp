#include <fmt/format.h>

#include <span>
#include <utility>

#include "sim/simulate.hpp"
#include "tests/bench/compare/cases.hpp"
#include "tests/bench/valid.hpp"
#include "topology/check.hpp"
#include "topology/cluster.hpp"
#include "workloads/transfers.hpp"

namespace fourfold {
namespace {

Graph one_switch(const RingCase& ring) {
    const Fabric fabric{.shape = valid(find_shape("switch")), .link = ring.link, .parameters = {}};
    return valid(seal(valid(build_cluster(
        {.nodes = ring.ranks, .devices_per_node = 1, .node = {}, .fabric = fabric}))));
}

Graph two_levels(const TreeCase& tree) {
    GraphDraft draft;
    const VertexId core = draft.add_switch("core");
    VertexId leaf{};
    for (std::uint32_t host = 0; host < tree.hosts; ++host) {
        if (host % tree.leaf_hosts == 0) {
            leaf = draft.add_switch(fmt::format("leaf{}", host / tree.leaf_hosts));
            draft.add_cable(leaf, core, tree.uplink);
        }
        draft.add_cable(draft.add_device(fmt::format("host{}", host), host), leaf, tree.port);
    }
    return valid(seal(std::move(draft)));
}

std::vector<double> ends_of(std::span<const TaskId> tasks, const Timeline& timeline) {
    std::vector<double> ends;
    for (const TaskId task : tasks) ends.push_back(to_seconds(timeline.end[task]));
    return ends;
}

}  // namespace

std::vector<double> run_in_fourfold(const RingCase& ring) {
    const Graph graph = one_switch(ring);
    Routes routes(graph);
    ProgramDraft draft;
    Transfers transfers(routes, draft, valid(find_algorithm("ring")), {}, {});
    std::vector<DeviceId> members;
    for (const DeviceId device : ids<DeviceId>(ring.ranks)) members.push_back(device);
    const GroupId group = transfers.add_group(members);
    const CollectiveId collective = draft.add_collective(
        valid(transfers.collective(group, CollectiveKind::all_reduce, ring.bytes)));
    std::vector<TaskId> parts;
    for (const DeviceId device : members) {
        parts.push_back(draft.part(draft.add_stream(device, 0), collective, device.value));
    }
    const Program program = valid(seal(std::move(draft)));
    const Timeline timeline = valid(simulate(graph, program, {.links = LinkModel::messages}));
    FOURFOLD_CHECK(timeline.messages == std::uint64_t{ring.rounds()} * ring.ranks);
    return ends_of(parts, timeline);
}

std::vector<double> run_in_fourfold(const TreeCase& tree) {
    const Graph graph = two_levels(tree);
    Routes routes(graph);
    ProgramDraft draft;
    Transfers transfers(routes, draft, nullptr, {}, {});
    std::vector<TaskId> receives;
    for (const auto& [from, to, bytes] : tree.flows) {
        const TransferId transfer = transfers.message({from}, {to}, bytes);
        std::vector<TaskId> after;
        if (receives.size() >= tree.in_flight) after = {receives[receives.size() - tree.in_flight]};
        const TaskId send = draft.send(draft.add_stream({from}, 0), transfer, after);
        receives.push_back(draft.receive(draft.add_stream({to}, 0)));
        draft.connect(send, receives.back(), bytes);
    }
    const Program program = valid(seal(std::move(draft)));
    return ends_of(receives, valid(simulate(graph, program, {.links = LinkModel::flows})));
}

}  // namespace fourfold
