#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "results/measure.hpp"
#include "tests/support/training.hpp"
#include "workloads/framework.hpp"
#include "workloads/layer.hpp"
#include "workloads/stage.hpp"

namespace fourfold {
namespace {

/// A device on which every matrix multiplication takes `gemm`, every other kernel `memory`, and
/// every attention core `core`: it computes and copies infinitely fast, and only starts slowly.
Device device_of(Duration gemm, Duration memory, Duration core) {
    Device device;
    device.peak = device.memory_bandwidth = std::numeric_limits<double>::infinity();
    device.gemm.launch_s = to_seconds(gemm);
    device.memory_launch_s = to_seconds(memory);
    device.flash_launch_forward_s = device.flash_launch_backward_s = to_seconds(core);
    return device;
}

/// A stage of one layer between two others, for one micro-batch. Forward: norm, qkv, core,
/// projection, residual, norm, first, activation, second, residual: 10 kernels. Backward: 4
/// matrices twice, core, activation and two norms of 3 launches each: 8 + 1 + 1 + 6 = 16.
TrainingStep middle_step(Duration kernel) {
    TrainingStep step = step_of(gpt(3, 64, 4, 128, 16));
    step.model.attention = Attention::flash;
    step.model.positions = Positions::rotary;
    step.model.bias = step.model.dropout = step.model.tied_embeddings = false;
    step.device = device_of(kernel, kernel, kernel);
    step.framework.accumulate_bytes = 0;
    step.split.pipeline = 3;
    step.gradient_norm = false;
    set_micro_batches(step, 1);
    return step;
}

/// What happens on the middle device of three.
struct Middle {
    Duration received{};           // the action may begin
    std::optional<Duration> host;  // the last that its host works on before the kernels
    Duration begin{}, end{};       // of the kernels
};

Middle middle_of(const Run& run, Pass pass, std::uint32_t device = 1) {
    const Program& program = run.lowered.program;
    Middle found;
    const auto since_start = [](Time time) { return time.time_since_epoch(); };
    for (const TaskId task : run.timeline.begin.keys()) {
        const Label& label = run.lowered.labels[task];
        const bool forward = label.pass == Pass::forward;
        if (program.device(task).value != device || forward != (pass == Pass::forward)) continue;
        if (label.pass == Pass::update) continue;
        if (program.kind(task) == TaskKind::receive) {
            found.received = since_start(run.timeline.end[task]);
        } else if (label.axis == Axis::host) {
            found.host = since_start(run.timeline.end[task]);
        } else if (is_kernel(program, task, label)) {
            found.begin = since_start(run.timeline.begin[task]);
            found.end = since_start(run.timeline.end[task]);
        }
    }
    return found;
}

Graph three() { return cluster(1, 3); }

/// The end of the kernels of a list, each of which waits for the one before it and for the host.
Duration end_by_hand(const std::vector<Operation>& operations, Duration busy) {
    double issued = to_seconds(busy), done = 0;
    for (const Operation& operation : operations) {
        done = std::max(done, issued + operation.lead) + operation.seconds;
        issued += operation.host;
    }
    return from_seconds(done);
}

/// What the host of a device works, task by task.
std::vector<Duration> host_tasks(const Run& run, std::uint32_t device) {
    std::vector<Duration> found;
    for (const TaskId task : run.timeline.begin.keys()) {
        const bool is_host = run.lowered.labels[task].axis == Axis::host;
        if (!is_host || run.lowered.program.device(task).value != device) continue;
        found.push_back(run.timeline.end[task] - run.timeline.begin[task]);
    }
    return found;
}

}  // namespace

TEST_CASE("a kernel that is longer than its launch hides the launches of those behind it") {
    // 10 kernels of 5 us, launches of 2 us: the first waits for its own.
    TrainingStep step = middle_step(5_us);
    step.framework.host.forward_launch = 2_us;
    const Middle forward = middle_of(run_step(step, three()), Pass::forward);
    CHECK(forward.begin == forward.received + 2_us);
    CHECK(forward.end == forward.received + 2_us + 10 * 5_us);
}

TEST_CASE("kernels that are shorter than their launches end with the last launch and kernel") {
    // Kernel i starts at 7 i us: the tenth ends at 70 + 2 us.
    TrainingStep step = middle_step(2_us);
    step.framework.host.forward_launch = 7_us;
    step.framework.host.backward_launch = 3_us;
    const Run run = run_step(step, three());
    const Middle forward = middle_of(run, Pass::forward);
    CHECK(forward.end == forward.received + 10 * 7_us + 2_us);
    CHECK(forward.end - forward.begin == 10 * 2_us);
    // Backward: 16 launches. The last three are a norm's two, which count as one kernel and run
    // from 45 to 49 us, and an addition, issued at 48 us: to 51 us.
    const Middle backward = middle_of(run, Pass::backward);
    CHECK(backward.end == backward.received + 51_us);
}

TEST_CASE("a list of long and short kernels waits for the host as often as it has to") {
    for (const Duration gemm : {1_us, 4_us, 11_us, 30_us}) {
        for (const Duration memory : {1_us, 6_us, 20_us}) {
            for (const Duration core : {2_us, 50_us}) {
                for (const Duration launch : {1_us, 3_us, 9_us, 25_us}) {
                    TrainingStep step = middle_step(gemm);
                    step.device = device_of(gemm, memory, core);
                    step.framework.host = {.forward_launch = launch,
                                           .backward_launch = launch / 2,
                                           .micro_batch = 30_us};
                    const Run run = run_step(step, three());
                    for (const ActionKind kind : {ActionKind::forward, ActionKind::backward}) {
                        const bool forward = kind == ActionKind::forward;
                        const Duration end =
                            end_by_hand(stage_operations(step, {.stage = 1, .kind = kind}),
                                        forward ? 10_us : 20_us);
                        const Middle found =
                            middle_of(run, forward ? Pass::forward : Pass::backward);
                        // Each of the two sums is rounded to a picosecond.
                        CHECK(found.end - found.received >= end - 2_ps);
                        CHECK(found.end - found.received <= end + 2_ps);
                    }
                }
            }
        }
    }
}

TEST_CASE("recomputed forwards cost forward launches") {
    // 10 recomputed kernels and 16 of the backward.
    TrainingStep step = middle_step(2_us);
    step.recompute = Recompute::full;
    step.framework.host.forward_launch = 7_us;
    step.framework.host.backward_launch = 3_us;
    const Middle backward = middle_of(run_step(step, three()), Pass::backward);
    CHECK(backward.end == backward.received + 10 * 7_us + 51_us);
    CHECK(launch_seconds(step.framework.host, Pass::recompute) == to_seconds(7_us));
    CHECK(launch_seconds(step.framework.host, Pass::update) == to_seconds(3_us));
}

TEST_CASE(
    "a third of a micro-batch's host time comes before its forward and two before its backward") {
    TrainingStep step = middle_step(5_us);
    step.framework.host.micro_batch = 30_us;
    Run run = run_step(step, three());
    CHECK(middle_of(run, Pass::forward).begin == middle_of(run, Pass::forward).received + 10_us);
    CHECK(middle_of(run, Pass::backward).begin == middle_of(run, Pass::backward).received + 20_us);

    // Two chunks share it: 6 stages of a layer, 5 and 10 us for each.
    step.schedule = schedule_named("interleaved_1f1b");
    step.chunks = 2;
    step.model.layers = 6;
    set_micro_batches(step, 3);
    run = run_step(step, three());
    Duration host{};
    for (const Duration task : host_tasks(run, 1)) host += task;
    CHECK(host == 3 * 30_us);
}

TEST_CASE("a split backward has a third of a micro-batch's host time before each half") {
    TrainingStep step = middle_step(5_us);
    step.framework.host.micro_batch = 30_us;
    step.schedule = schedule_named("zb1p");
    const Run run = run_step(step, three());
    CHECK(host_tasks(run, 1) == std::vector<Duration>{10_us, 10_us, 10_us});
}

TEST_CASE("a collective counts as one launch") {
    // Two tensor ranks, launches of 7 us, kernels of 2 us: norm, qkv, core, projection [all-reduce]
    // residual, norm, first, activation, second [all-reduce] residual. The first all-reduce is the
    // fifth launch, at 35 us; the kernels before it end at 30 us.
    TrainingStep step = middle_step(2_us);
    step.split.tensor = 2;
    step.split.scatter_gather = false;
    step.framework.host.forward_launch = 7_us;
    const Run run = run_step(step, cluster(1, 6));
    std::vector<Duration> begins, ends;
    for (const TaskId task : run.timeline.begin.keys()) {
        const Label& label = run.lowered.labels[task];
        if (run.lowered.program.device(task).value != 2) continue;
        if (label.axis != Axis::tensor || label.pass != Pass::forward) continue;
        begins.push_back(run.timeline.begin[task].time_since_epoch());
        ends.push_back(run.timeline.end[task].time_since_epoch());
    }
    REQUIRE(begins.size() == 2);
    const Middle forward = middle_of(run, Pass::forward, 2);
    CHECK(begins[0] == forward.received + 35_us);
    // 5 kernels and the second all-reduce are the launches 6 to 11.
    CHECK(begins[1] == std::max(forward.received + 11 * 7_us, ends[0] + 5 * 2_us));
}

TEST_CASE("a blocking host adds launches and waits to the kernels") {
    // 10 kernels of 5 us, each of which is issued in 2 us and waited for in 3 us.
    TrainingStep step = middle_step(5_us);
    step.framework.host = {.forward_launch = 2_us, .blocking = true, .wait = 3_us};
    const Middle forward = middle_of(run_step(step, three()), Pass::forward);
    CHECK(forward.end == forward.received + 10 * (5_us + 2_us + 3_us));

    // With two all-reduces among them it issues and waits 12 times.
    step.split.tensor = 2;
    step.split.scatter_gather = false;
    const Run run = run_step(step, cluster(1, 6));
    Duration reduced{};
    for (const TaskId task : run.timeline.begin.keys()) {
        const Label& label = run.lowered.labels[task];
        if (run.lowered.program.device(task).value != 2) continue;
        if (label.axis != Axis::tensor || label.pass != Pass::forward) continue;
        reduced += run.timeline.end[task] - run.timeline.begin[task];
    }
    const Middle both = middle_of(run, Pass::forward, 2);
    CHECK(both.end == both.received + 10 * 5_us + 12 * (2_us + 3_us) + reduced);
}

TEST_CASE("the host works for the step before the optimizer") {
    // One device: forward and backward, then 40 us of the host, then one kernel.
    TrainingStep step = middle_step(5_us);
    step.split.pipeline = 1;
    const Graph graph = cluster(1, 1);
    const Duration without = run_step(step, graph).time();
    step.framework.host.step = 40_us;
    const Run run = run_step(step, graph);
    CHECK(run.time() == without + 40_us);
    CHECK(host_tasks(run, 0) == std::vector<Duration>{40_us});
}

TEST_CASE("measured stages include what their host takes") {
    TrainingStep step = middle_step(5_us);
    set_stage_times(step, {.forward = 10_us, .input_gradient = 12_us, .weight_gradient = 8_us});
    const Duration without = run_step(step, three()).time();
    step.framework.host = {
        .forward_launch = 7_us, .backward_launch = 7_us, .micro_batch = 30_us, .step = 40_us};
    const Run run = run_step(step, three());
    CHECK(run.time() == without);
    CHECK(host_tasks(run, 1).empty());
}

TEST_CASE("what a device waits for its host is a class of its own time") {
    // One device, launches of 7 us, kernels of 2 us: all but the kernels is the host's.
    TrainingStep step = middle_step(2_us);
    step.split.pipeline = 1;
    step.framework.host = {
        .forward_launch = 7_us, .backward_launch = 3_us, .micro_batch = 30_us, .step = 40_us};
    set_micro_batches(step, 2);
    const Run run = run_step(step, cluster(1, 1));
    Duration host{};
    for (const Duration task : host_tasks(run, 0)) host += task;
    const TimePartition parts = partition_time(run.lowered, run.timeline).front();
    CHECK(parts[static_cast<std::size_t>(TimeClass::host)] == host);
    CHECK(parts[static_cast<std::size_t>(TimeClass::compute)] == run.time() - host);
    CHECK(host > 40_us + 2 * 30_us);

    // Elsewhere a stage waits for the others meanwhile; its classes still sum to the step, which
    // partition_time checks.
    step.split.pipeline = 3;
    step.split.tensor = 2;
    const Run pipeline = run_step(step, cluster(1, 6));
    const Measures found = measure(step, pipeline.lowered, pipeline.timeline);
    double sum = 0;
    for (const double part : found.time) sum += part;
    CHECK(sum == doctest::Approx(1).epsilon(1e-12));
    CHECK(found.time[static_cast<std::size_t>(TimeClass::host)] > 0);
}

}  // namespace fourfold
