#include "results/collective_run.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/audit.hpp"
#include "topology/check.hpp"
#include "topology/routes.hpp"
#include "workloads/transfers.hpp"

namespace fourfold {
namespace {

// A message for each pair: beyond it nobody waits.
constexpr std::uint64_t pairs_max = std::uint64_t{1} << 24;

struct Usage {
    double seconds = 0;
    std::int64_t peak_bytes = 0;
};

Usage usage() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return {seconds(used.ru_utime) + seconds(used.ru_stime),
            static_cast<std::int64_t>(used.ru_maxrss) * 1024};
}

Result<void> check(const CollectiveQuestion& question) {
    if (question.ranks == 0) return problem("ranks", "a collective needs at least 1 rank");
    if (question.root >= question.ranks) {
        return problem("root", fmt::format("root {} is none of the {} ranks, which count from 0",
                                           question.root, question.ranks));
    }
    if (question.nodes &&
        (question.nodes->ranks == 0 || question.ranks % question.nodes->ranks != 0)) {
        return problem("per-node", fmt::format("{} ranks are no whole number of nodes of {}",
                                               question.ranks, question.nodes->ranks));
    }
    // What a rank or a shared link carries is at most this multiple of the bytes: it must fit.
    const std::int64_t ranks = question.ranks;
    const std::int64_t times =
        question.kind == CollectiveKind::all_to_all ? ranks * ranks : 4 * ranks;
    constexpr std::int64_t most = std::int64_t{1} << 62;
    if (question.bytes.value < 0 || question.bytes.value > most / times) {
        return problem("bytes", fmt::format("{} ranks can exchange 0 to {} bytes, not {}", ranks,
                                            most / times, question.bytes.value));
    }
    FOURFOLD_CHECK(question.start.empty() || question.start.size() == question.ranks);
    return {};
}

Result<Graph> build_graph(const CollectiveQuestion& question) {
    ClusterShape shape{.nodes = question.ranks,
                       .devices_per_node = 1,
                       .node = std::nullopt,
                       .fabric = question.network};
    if (question.nodes) {
        shape.nodes = question.ranks / question.nodes->ranks;
        shape.devices_per_node = question.nodes->ranks;
        shape.node = question.nodes->network;
    }
    Result<GraphDraft> draft = build_cluster(shape);
    if (!draft) {
        // The question knows no fabric: "fabric.dimensions" is its "dimensions".
        Problem found = draft.error();
        constexpr std::string_view fabric = "fabric.";
        if (found.where.starts_with(fabric)) found.where.erase(0, fabric.size());
        if (found.where == "nodes") {
            return problem(
                "ranks", fmt::format("{} ranks are too many; at most {}", question.ranks, 1 << 20));
        }
        return tl::unexpected(std::move(found));
    }
    draft->routing = question.routing;
    return seal(std::move(*draft));
}

// The one pair of links that every message goes through, if all are alike: the closed forms assume
// that each member has a port of `rate` to all others, and nothing else is ever shared. A switch is
// that for any algorithm. For a ring it is enough that its own edges are equal and have links of
// their own; and of two members, any algorithm is a ring.
std::optional<EqualLinks> find_equal_links(const CollectiveQuestion& question,
                                           const Algorithm& algorithm, Routes& routes) {
    const Graph& graph = routes.graph();
    const auto edge_of = [&](const Route& route) -> std::optional<EqualLinks> {
        EqualLinks edge{BytesPerSecond{std::numeric_limits<std::int64_t>::max()}, route.latency};
        for (const Share& share : route.shares) {
            if (share.part != Share::whole) return std::nullopt;
            edge.rate = std::min(edge.rate, graph[share.link].rate);
        }
        return edge;
    };
    const std::uint32_t n = question.ranks;
    if (n == 1) return EqualLinks{question.network.link.bandwidth, Duration::zero()};
    if (question.nodes) return std::nullopt;
    if (question.network.shape->name == "switch") {
        return edge_of(routes.route(DeviceId{0}, DeviceId{1}));
    }
    if (algorithm.name != "ring" && n != 2) return std::nullopt;

    std::optional<EqualLinks> common;
    IdVector<LinkId, std::uint8_t> used(graph.links().size(), 0);
    for (std::uint32_t rank = 0; rank < n; ++rank) {
        const Route& route = routes.route(DeviceId{rank}, DeviceId{rank + 1 < n ? rank + 1 : 0});
        const std::optional<EqualLinks> edge = edge_of(route);
        if (!edge) return std::nullopt;
        if (!common) common = edge;
        if (edge->rate != common->rate || edge->latency != common->latency) return std::nullopt;
        for (const Share& share : route.shares) {
            if (used[share.link]++ != 0) return std::nullopt;
        }
    }
    return common;
}

// In every shape all ranks have the same ports, and rank 1 is as near to rank 0 as any is to any,
// or the first rank of the next node is.
EqualLinks find_best_links(const CollectiveQuestion& question, Routes& routes) {
    EqualLinks best;
    const Graph& graph = routes.graph();
    const VertexId first = graph.devices()[0];
    for (const Link& link : graph.links()) {
        if (link.from == first) best.rate.value += link.rate.value;
    }
    if (question.ranks > 1) best.latency = routes.route(DeviceId{0}, DeviceId{1}).latency;
    if (question.nodes && question.nodes->ranks < question.ranks) {
        const DeviceId next{question.nodes->ranks};
        best.latency = std::min(best.latency, routes.route(DeviceId{0}, next).latency);
    }
    return best;
}

}  // namespace

Result<CollectiveProgram> prepare_collective(const CollectiveQuestion& question) {
    if (auto fine = check(question); !fine) return tl::unexpected(fine.error());
    Result<Graph> graph = build_graph(question);
    if (!graph) return tl::unexpected(graph.error());

    CollectiveProgram made;
    made.graph = std::move(*graph);
    Routes routes(made.graph);
    ProgramDraft draft;
    const TransportCosts ideal;
    std::vector<DeviceId> members;
    for (const DeviceId device : ids<DeviceId>(question.ranks)) members.push_back(device);

    made.algorithm = question.algorithm;
    if (made.algorithm == nullptr) {
        Transfers choosing(routes, draft, nullptr, ideal, ideal);
        const GroupId group = choosing.add_group(members);
        made.algorithm = &choosing.algorithm(group, question.kind, question.bytes, question.root);
    }
    Transfers transfers(routes, draft, made.algorithm, ideal, ideal);
    const GroupId group = transfers.add_group(std::move(members));
    made.call = transfers.call(group, question.kind, question.bytes, question.root);
    if (const auto reason = made.algorithm->refuse(made.call)) return problem("algorithm", *reason);
    const std::uint64_t others = question.ranks - 1;
    const std::string_view name = made.algorithm->name;
    const bool joins_all =
        name == "pairwise" || (name == "direct" && question.kind != CollectiveKind::broadcast);
    if (joins_all && others * question.ranks > pairs_max) {
        return problem("ranks",
                       fmt::format("{} joins each of {} ranks with each other: {} "
                                   "pairs are too many; at most {}",
                                   name, question.ranks, others * question.ranks, pairs_max));
    }

    const Result<TransferId> transfer =
        transfers.collective(group, question.kind, question.bytes, question.root);
    if (!transfer) return tl::unexpected(transfer.error());
    const CollectiveId collective = draft.add_collective(*transfer);
    for (std::uint32_t rank = 0; rank < question.ranks; ++rank) {
        const StreamId stream = draft.add_stream(DeviceId{rank}, 0);
        if (!question.start.empty()) draft.compute(stream, question.start[rank]);
        draft.part(stream, collective, rank);
    }
    made.equal_links = find_equal_links(question, *made.algorithm, routes);
    made.best_links = find_best_links(question, routes);
    Result<Program> program = seal(std::move(draft));
    if (!program) return tl::unexpected(program.error());
    made.program = std::move(*program);
    return made;
}

Result<CollectiveRun> run_collective(const CollectiveQuestion& question) {
    const Usage before = usage();
    const Result<CollectiveProgram> prepared = prepare_collective(question);
    if (!prepared) return tl::unexpected(prepared.error());
    const Program& program = prepared->program;
    const SimulateOptions simulated{
        .links = question.links, .record_rates = question.audit, .quantum = question.quantum};
    const Result<Timeline> timeline = simulate(prepared->graph, program, simulated);
    if (!timeline) return tl::unexpected(timeline.error());

    CollectiveRun run;
    run.algorithm = prepared->algorithm->name;
    run.time = timeline->finish.time_since_epoch();
    const bool together = std::all_of(question.start.begin(), question.start.end(),
                                      [](Duration late) { return late == Duration::zero(); });
    if (prepared->equal_links && together) {
        run.closed_form = prepared->algorithm->closed_form(prepared->call, *prepared->equal_links);
    }
    if (question.ranks > 1) run.bound = bandwidth_bound(prepared->call, prepared->best_links);
    run.messages = timeline->messages;
    const CollectiveId collective{0};
    for (const Bytes sent : program.transfer_of(collective).sent) {
        run.wire_bytes_per_rank = std::max(run.wire_bytes_per_rank, sent);
    }
    if (run.time > Duration::zero()) {
        run.algorithm_bandwidth = static_cast<double>(question.bytes.value) / to_seconds(run.time);
        run.bus_bandwidth = run.algorithm_bandwidth * bus_factor(question.kind, question.ranks);
    }
    for (const TaskId part : program.parts(collective)) run.finish.push_back(timeline->end[part]);
    if (question.audit) {
        run.faults = audit(prepared->graph, program, *timeline, simulated);
    }
    run.events = timeline->events;
    const Usage after = usage();
    run.seconds = after.seconds - before.seconds;
    run.peak_memory_bytes = after.peak_bytes;
    return run;
}

}  // namespace fourfold
