// Scenarios end to end: reading (the catalog and the file), and one training step from its
// description to its measures (lowering, simulating, measuring, traffic).

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

#include "results/evaluate.hpp"
#include "results/measure.hpp"
#include "results/traffic.hpp"
#include "scenarios/catalog.hpp"
#include "scenarios/scenario.hpp"
#include "tests/bench/measuring.hpp"
#include "topology/check.hpp"

namespace fourfold {
namespace {

Scenario load(const std::string& file) {
    const std::filesystem::path path = std::filesystem::path(FOURFOLD_SOURCE_DIR) / file;
    auto catalog = embedded_catalog();
    FOURFOLD_CHECK(catalog.has_value(), "the catalog is wrong");
    auto scenario = load_scenario(path, {}, *catalog);
    FOURFOLD_CHECK(scenario.has_value(), "cannot read {}", file);
    return std::move(*scenario);
}

void read(benchmark::State& state, const std::string& file) {
    for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(load(file));
}

void step(benchmark::State& state, const std::string& file) {
    const Scenario scenario = load(file);
    reset_peak_memory();
    std::uint64_t events = 0;
    std::size_t tasks = 0;
    Duration time{};
    for ([[maybe_unused]] auto _ : state) {
        const auto evaluation = evaluate(scenario.step, scenario.graph,
                                         {.links = scenario.links,
                                          .changes = scenario.changes,
                                          .quantum = scenario.quantum,
                                          .audit = false});
        if (!evaluation) {
            state.SkipWithError(evaluation.error().what.c_str());
            return;
        }
        events += evaluation->events;
        tasks = evaluation->tasks;
        time = evaluation->measures.step_time;
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(events));
    state.counters["tasks"] = static_cast<double>(tasks);
    state.counters["simulated_ms"] = 1e3 * to_seconds(time);
    state.counters["peak_memory"] = bytes_counter(peak_memory_bytes());
}

const std::string one_switch = "{shape: switch, link: hdr}";
const std::string rails = "{shape: rails, link: hdr, leaf_ports: 32}";
const std::string narrow_tree = "{shape: fat_tree, link: hdr, oversubscription: 4}";

// A 175B step on nodes of 8: tensor 8, pipeline 8, 64 micro-batches.
std::string replicas_text(int data, const std::string& fabric, const std::string& perturbed) {
    return fmt::format(R"(
model: gpt3-175b
cluster: {{device: a100-sxm-80gb, nodes: {}, devices_per_node: 8,
          node: {{shape: switch, link: nvlink3}}, fabric: {}}}
parallel: {{tensor: 8, pipeline: 8, data: {}}}
batch: {{global: {}, micro: 1}}
schedule: {{kind: 1f1b}}
perturb: {}
)",
                       8 * data, fabric, data, 64 * data, perturbed);
}

// Lowered and simulated, folding included.
void replicas(benchmark::State& state, int data, const std::string& fabric,
              const std::string& perturbed) {
    const auto catalog = embedded_catalog();
    FOURFOLD_CHECK(catalog.has_value());
    const auto scenario =
        parse_scenario(replicas_text(data, fabric, perturbed), "replicas.yaml", {}, *catalog);
    FOURFOLD_CHECK(scenario.has_value());
    for ([[maybe_unused]] auto _ : state) {
        const auto lowered = lower(scenario->step, scenario->graph, Folding::exact, Detail::chains);
        FOURFOLD_CHECK(lowered.has_value());
        const auto timeline = simulate(scenario->graph, lowered->program, {});
        FOURFOLD_CHECK(timeline.has_value());
        state.counters["tasks"] = static_cast<double>(lowered->program.tasks());
        state.counters["step_ms"] = 1e3 * to_seconds(timeline->finish.time_since_epoch());
    }
}
BENCHMARK_CAPTURE(replicas, 1024_devices, 16, one_switch, "[]")
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replicas, 98304_devices, 1536, one_switch, "[]")
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replicas, 98304_devices_4_to_1, 1536, narrow_tree, "[]")
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replicas, 98304_devices_on_rails, 1536, rails, "[]")
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replicas, 1024_devices_one_slow, 16, one_switch,
                  "[{slow_device: 17, factor: 1.3}]")
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

// The same step message by message, 58 million of them (44 of tensor groups), with all devices
// simulated: lowered, simulated, measured. Items are messages.
void messages(benchmark::State& state, bool each) {
    const auto catalog = embedded_catalog();
    FOURFOLD_CHECK(catalog.has_value());
    const auto scenario =
        parse_scenario(replicas_text(16, one_switch, "[]"), "replicas.yaml", {}, *catalog);
    FOURFOLD_CHECK(scenario.has_value());
    reset_peak_memory();
    std::uint64_t messages = 0, events = 0;
    for ([[maybe_unused]] auto _ : state) {
        const auto lowered = lower(scenario->step, scenario->graph, Folding::none);
        FOURFOLD_CHECK(lowered.has_value());
        const auto timeline = simulate(scenario->graph, lowered->program,
                                       {.links = LinkModel::messages, .each_message = each});
        FOURFOLD_CHECK(timeline.has_value());
        benchmark::DoNotOptimize(measure(scenario->step, *lowered, *timeline));
        benchmark::DoNotOptimize(traffic(scenario->graph, *lowered, *timeline));
        messages += timeline->messages;
        events = timeline->events;
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(messages));
    state.counters["messages"] =
        static_cast<double>(messages) / static_cast<double>(state.iterations());
    state.counters["events"] = static_cast<double>(events);
    state.counters["peak_memory"] = bytes_counter(peak_memory_bytes());
}
BENCHMARK_CAPTURE(messages, 1024_devices, false)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(messages, 1024_devices_each, true)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

const std::string quickstart = "scenarios/quickstart.yaml";
const std::string megatron = "scenarios/published/megatron_sc21/145.6b.yaml";

BENCHMARK_CAPTURE(read, quickstart, quickstart)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step, quickstart, quickstart)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step, megatron_145_6b, megatron)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fourfold
