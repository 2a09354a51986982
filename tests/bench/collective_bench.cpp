// Collectives message by message: a ring all-reduce of 1,024 ranks, 2 * 1,023 rounds of 1,024
// messages; and direct all-to-alls, a message for every pair, whose memory is to grow with the
// ranks. From the link graph to the timeline with its statistics: routes, program and simulation
// are all in the time. Items are messages.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "sim/simulate.hpp"
#include "tests/bench/measuring.hpp"
#include "tests/bench/valid.hpp"
#include "topology/cluster.hpp"
#include "workloads/transfers.hpp"

namespace fourfold {
namespace {

/// All ranks on one switch: 25 GB/s and 5 us a link.
Graph one_switch(std::uint32_t ranks) {
    const LinkSpec link{.bandwidth = 25_GBps, .latency = 5_us};
    const Fabric fabric{.shape = valid(find_shape("switch")), .link = link, .parameters = {}};
    return valid(seal(valid(
        build_cluster({.nodes = ranks, .devices_per_node = 1, .node = {}, .fabric = fabric}))));
}

struct Call {
    CollectiveKind kind;
    const char* algorithm;
    Duration skew;  // each rank comes to it after a time of its own, below this
};

/// One call of 64 MiB by all devices.
Program program(const Graph& graph, const Call& call) {
    std::mt19937_64 random(1);
    Routes routes(graph);
    ProgramDraft draft;
    Transfers transfers(routes, draft, valid(find_algorithm(call.algorithm)), {}, {});
    std::vector<DeviceId> members;
    for (const DeviceId device : ids<DeviceId>(graph.devices().size())) members.push_back(device);
    const GroupId group = transfers.add_group(members);
    const CollectiveId collective =
        draft.add_collective(valid(transfers.collective(group, call.kind, 64_MiB)));
    for (const DeviceId device : members) {
        const StreamId stream = draft.add_stream(device, 0);
        if (call.skew > Duration(0)) {
            const auto limit = static_cast<std::uint64_t>(call.skew.count());
            draft.compute(stream, Duration(static_cast<std::int64_t>(random() % limit)));
        }
        draft.part(stream, collective, device.value);
    }
    return valid(seal(std::move(draft)));
}

void collective(benchmark::State& state, std::uint32_t ranks, const Call& call) {
    const Graph graph = one_switch(ranks);
    reset_peak_memory();
    std::uint64_t messages = 0;
    std::uint64_t events = 0;
    Duration time{};
    for ([[maybe_unused]] auto _ : state) {
        Timeline timeline =
            valid(simulate(graph, program(graph, call), {.links = LinkModel::messages}));
        messages += timeline.messages;
        events += timeline.events;
        time = timeline.finish.time_since_epoch();
        benchmark::DoNotOptimize(timeline.busy);
    }
    const auto per_iteration = [&](std::uint64_t count) {
        return static_cast<double>(count) / static_cast<double>(state.iterations());
    };
    state.SetItemsProcessed(static_cast<std::int64_t>(messages));
    state.counters["messages"] = per_iteration(messages);
    state.counters["events"] = per_iteration(events);
    state.counters["simulated_ms"] = 1e3 * to_seconds(time);
    state.counters["peak_memory"] = bytes_counter(peak_memory_bytes());
}

constexpr Call ring{CollectiveKind::all_reduce, "ring", Duration(0)};
constexpr Call skewed_ring{CollectiveKind::all_reduce, "ring", 1_ms};
constexpr Call all_to_all{CollectiveKind::all_to_all, "direct", Duration(0)};

BENCHMARK_CAPTURE(collective, ring_lock_step, 1'024, ring)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(collective, ring_skewed_starts, 1'024, skewed_ring)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(collective, all_to_all_1024, 1'024, all_to_all)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(collective, all_to_all_2048, 2'048, all_to_all)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(collective, all_to_all_4096, 4'096, all_to_all)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fourfold
