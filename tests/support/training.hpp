#pragma once

// Small training steps for tests. Every run is audited and held against its bounds.

#include <doctest/doctest.h>

#include <array>
#include <string_view>

#include "tests/support/network.hpp"
#include "tests/support/topology.hpp"
#include "workloads/lower.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

inline Device a100() {
    Device device;
    device.name = "A100";
    device.peak = 312e12;
    device.memory_bandwidth = 2.039e12;
    device.multiprocessors = 108;
    device.fitted = true;
    return device;
}

/// A GPT: biases, layernorms, learned positions, tied embeddings, unfused attention, dropout.
inline Transformer gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                       std::int64_t vocab, std::int64_t sequence) {
    Transformer model;
    model.name = "GPT";
    model.layers = layers;
    model.hidden = hidden;
    model.heads = model.kv_heads = heads;
    model.ffn = 4 * hidden;
    model.vocab = vocab;
    model.sequence = sequence;
    return model;
}

inline Transformer llama3_8b() {
    Transformer model = gpt(32, 4096, 32, 128256, 8192);
    model.name = "Llama 3 8B";
    model.kv_heads = 8;
    model.ffn = 14336;
    model.mlp = Mlp::swiglu;
    model.norm = Norm::rmsnorm;
    model.positions = Positions::rotary;
    model.attention = Attention::flash;
    model.tied_embeddings = model.bias = model.dropout = false;
    return model;
}

inline const Schedule* schedule_named(std::string_view name) {
    const auto found = find_schedule(name);
    REQUIRE(found.has_value());
    return *found;
}

inline TrainingStep step_of(const Transformer& model) {
    TrainingStep step;
    step.model = model;
    step.device = a100();
    step.schedule = schedule_named("1f1b");
    return step;
}

/// An order of axes, innermost first; the context axis, which is not cut, comes last.
inline std::array<SplitAxis, 4> order_of(const std::array<SplitAxis, 3>& axes) {
    return {axes[0], axes[1], axes[2], SplitAxis::context};
}

/// Batch of so many micro-batches of one sequence.
inline void set_micro_batches(TrainingStep& step, std::int64_t count) {
    step.global_batch = count * step.micro_batch * step.split.data;
}

/// A measured stage and nothing else that takes time: no optimizer, no gradient norm.
inline void set_stage_times(TrainingStep& step, const MeasuredTimes& times) {
    step.measured.stage = times;
    step.measured.optimizer = Duration::zero();
    step.gradient_norm = false;
}

/// Nodes behind switches of 300 GB/s and 1.5 us, joined by a switch of 25 GB/s and 2.5 us.
inline Graph cluster(std::uint32_t nodes, std::uint32_t devices_per_node) {
    ClusterShape shape;
    shape.nodes = nodes;
    shape.devices_per_node = devices_per_node;
    if (devices_per_node > 1) shape.node = fabric_of("switch", {300_GBps, 1500_ns, 1.0});
    if (nodes > 1) shape.fabric = fabric_of("switch", {25_GBps, 2500_ns, 1.0});
    return seal_cluster(shape);
}

/// Devices of one node in a ring: every two neighbours are one link apart.
inline Graph ring(std::uint32_t devices, const LinkSpec& link) {
    ClusterShape shape;
    shape.devices_per_node = devices;
    if (devices > 1) shape.node = fabric_of("ring", link);
    return seal_cluster(shape);
}

inline Duration compute_time(const Program& program, const Timeline& timeline, DeviceId device) {
    Duration sum{};
    for (const TaskId task : timeline.begin.keys()) {
        if (program.kind(task) != TaskKind::compute || program.device(task) != device) continue;
        sum += timeline.end[task] - timeline.begin[task];
    }
    return sum;
}

/// No run is shorter than the work of any device or than the bytes of any link take.
inline void check_bounds(const Graph& graph, const Program& program, const Timeline& timeline) {
    std::vector<Duration> work(graph.devices().size());
    for (const TaskId task : timeline.begin.keys()) {
        if (program.kind(task) != TaskKind::compute) continue;
        work[program.device(task).value] += timeline.end[task] - timeline.begin[task];
    }
    for (const Duration sum : work) CHECK(sum <= timeline.finish.time_since_epoch());
    for (const LinkId link : timeline.carried.keys()) {
        CHECK(timeline.carried[link] / graph[link].rate <= timeline.finish.time_since_epoch());
    }
}

struct Run {
    Lowered lowered;
    Timeline timeline;
    [[nodiscard]] Duration time() const { return timeline.finish.time_since_epoch(); }
};

inline Run run_step(const TrainingStep& step, const Graph& graph,
                    LinkModel links = LinkModel::flows) {
    const auto sound = check(step, graph.devices().size());
    REQUIRE_MESSAGE(sound.has_value(), (sound ? "" : sound.error().what));
    Result<Lowered> lowered = lower(step, graph);
    REQUIRE_MESSAGE(lowered.has_value(), (lowered ? "" : lowered.error().what));
    Run run{std::move(*lowered), {}};
    run.timeline = run_audited(graph, run.lowered.program, links);
    check_bounds(graph, run.lowered.program, run.timeline);
    return run;
}

}  // namespace fourfold
