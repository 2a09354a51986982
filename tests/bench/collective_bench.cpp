// A ring all-reduce of 1,024 ranks, message by message: 2 * 1,023 rounds of 1,024 messages. From
// the link graph to the timeline with its statistics: routes, program and simulation are all in the
// time. Items are messages.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "sim/simulate.hpp"
#include "tests/bench/measuring.hpp"
#include "topology/check.hpp"
#include "topology/cluster.hpp"
#include "workloads/transfers.hpp"

namespace fourfold {
namespace {

constexpr std::uint32_t ranks = 1'024;

template <class T>
T valid(Result<T> result) {
    FOURFOLD_CHECK(result.has_value(), "{}: {}", result.error().where, result.error().what);
    return std::move(*result);
}

/// All ranks on one switch: 25 GB/s and 5 us a link.
Graph one_switch() {
    const LinkSpec link{.bandwidth = 25_GBps, .latency = 5_us};
    const Fabric fabric{.shape = valid(find_shape("switch")), .link = link, .parameters = {}};
    return valid(seal(valid(
        build_cluster({.nodes = ranks, .devices_per_node = 1, .node = {}, .fabric = fabric}))));
}

/// One all-reduce of 64 MiB; each rank comes to it after a time of its own, below `skew`.
Program all_reduce(const Graph& graph, Duration skew) {
    std::mt19937_64 random(1);
    Routes routes(graph);
    ProgramDraft draft;
    Transfers transfers(routes, draft, valid(find_algorithm("ring")), {}, {});
    std::vector<DeviceId> members;
    for (const DeviceId device : ids<DeviceId>(ranks)) members.push_back(device);
    const GroupId group = transfers.add_group(members);
    const CollectiveId collective = draft.add_collective(
        valid(transfers.collective(group, CollectiveKind::all_reduce, 64_MiB)));
    for (const DeviceId device : members) {
        const StreamId stream = draft.add_stream(device, 0);
        if (skew > Duration(0)) {
            const auto limit = static_cast<std::uint64_t>(skew.count());
            draft.compute(stream, Duration(static_cast<std::int64_t>(random() % limit)));
        }
        draft.part(stream, collective, device.value);
    }
    return valid(seal(std::move(draft)));
}

void ring(benchmark::State& state, Duration skew) {
    const Graph graph = one_switch();
    reset_peak_memory();
    std::uint64_t messages = 0;
    std::uint64_t events = 0;
    Duration time{};
    for ([[maybe_unused]] auto _ : state) {
        Timeline timeline =
            valid(simulate(graph, all_reduce(graph, skew), {.links = LinkModel::messages}));
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
BENCHMARK_CAPTURE(ring, lock_step, Duration(0))
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ring, skewed_starts, 1_ms)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fourfold
