#include "results/uncertainty.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "results/doubts.hpp"
#include "results/evaluate.hpp"
#include "tests/support/training.hpp"
#include "workloads/kernels.hpp"

namespace fourfold {
namespace {

Uncertainty uncertainty_of(const TrainingStep& step, const Graph& graph) {
    const Result<Evaluation> made = evaluate(step, graph, {.audit = true, .uncertainty = true});
    REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().what));
    REQUIRE(made->uncertainty.has_value());
    return *made->uncertainty;
}

double value_of(const Uncertainty& found, std::string_view name) {
    for (const Elasticity& one : found.elasticities) {
        if (one.name == name) return one.value;
    }
    FAIL("no elasticity of ", std::string(name));
    return 0;
}

/// One device that starts kernels in no time and moves bytes in no time.
TrainingStep pure_compute() {
    TrainingStep step = step_of(gpt(2, 1024, 16, 1024, 1024));
    step.model.attention = Attention::flash;
    step.device.memory_bandwidth = std::numeric_limits<double>::infinity();
    step.device.memory_launch_s = step.device.gemm.launch_s = 0;
    step.device.flash_launch_forward_s = step.device.flash_launch_backward_s = 0;
    set_micro_batches(step, 1);
    return step;
}

/// Two data ranks that do next to nothing but to reduce 12 * 1024^2 gradients in one bucket.
TrainingStep pure_reduction() {
    TrainingStep step = step_of(gpt(1, 1024, 16, 128, 16));
    set_stage_times(step, {.forward = 1_ns, .input_gradient = 1_ns, .weight_gradient = 1_ns});
    step.split.data = 2;
    step.bucket = 1000_MiB;
    step.algorithm = *find_algorithm("ring");
    set_micro_batches(step, 1);
    return step;
}

TrainingStep mixed(std::int64_t tensor, std::int64_t data) {
    TrainingStep step = step_of(gpt(4, 256, 8, 1024, 128));
    step.split.tensor = tensor;
    step.split.data = data;
    step.framework.host = {.forward_launch = 4_us, .backward_launch = 2_us, .micro_batch = 30_us};
    set_micro_batches(step, 2);
    return step;
}

Graph without_blocks(std::uint32_t nodes, std::uint32_t devices_per_node) {
    ClusterShape shape;
    shape.nodes = nodes;
    shape.devices_per_node = devices_per_node;
    shape.node = fabric_of("switch", {300_GBps, 1500_ns, 1.0});
    shape.fabric = fabric_of("switch", {25_GBps, 2500_ns, 1.0});
    Result<GraphDraft> draft = build_cluster(shape);
    REQUIRE(draft.has_value());
    draft->blocks = {};
    Result<Graph> graph = seal(std::move(*draft));
    REQUIRE(graph.has_value());
    return std::move(*graph);
}

}  // namespace

TEST_CASE("a step of nothing but matrices is as fast as the matrix units") {
    const Uncertainty found = uncertainty_of(pure_compute(), cluster(1, 1));
    CHECK(value_of(found, "matrix units") == doctest::Approx(-1).epsilon(1e-6));
    CHECK(value_of(found, "memory bandwidth") == doctest::Approx(0));
    CHECK(value_of(found, "links in a node") == 0);
    CHECK(value_of(found, "network ports") == 0);
    CHECK(found.elasticities.front().name == "matrix units");  // the largest first
    // 1 / 0.9 of the time where they are 10 % slower.
    CHECK(found.elasticities.front().cost_of_ten_percent() ==
          doctest::Approx(1 / 0.9 - 1).epsilon(1e-6));
}

TEST_CASE("a device with measured shapes is as sensitive to its matrix units") {
    TrainingStep step = pure_compute();
    const Gemm gemm{.m = step.tokens(), .n = step.model.hidden, .k = step.model.hidden};
    step.device.gemm_residuals =
        gemm_residuals({{gemm, 1.3 * gemm_time(gemm, step.device)}}, step.device);
    REQUIRE(gemm_time(gemm, step.device) > 1.2 * gemm_time(gemm, pure_compute().device));
    CHECK(value_of(uncertainty_of(step, cluster(1, 1)), "matrix units") ==
          doctest::Approx(-1).epsilon(1e-6));
}

TEST_CASE("a step of one large all-reduce is as fast as the links that it crosses") {
    // About 50 MB over 25 GB/s, 2 ms, beside which 2 steps of 5 us are nothing.
    const Uncertainty across = uncertainty_of(pure_reduction(), cluster(2, 1));
    CHECK(value_of(across, "network ports") == doctest::Approx(-1).epsilon(0.02));
    CHECK(value_of(across, "links in a node") == 0);
    CHECK(value_of(across, "matrix units") == 0);

    const Uncertainty within = uncertainty_of(pure_reduction(), cluster(1, 2));
    CHECK(value_of(within, "links in a node") == doctest::Approx(-1).epsilon(0.05));
    CHECK(value_of(within, "network ports") == 0);
}

TEST_CASE("host and tensor overlap count only where there are any") {
    TrainingStep step = mixed(2, 2);
    const auto has = [&](std::string_view name) {
        for (const Elasticity& one : uncertainty_of(step, cluster(1, 4)).elasticities) {
            if (one.name == name) return true;
        }
        return false;
    };
    CHECK(has("host"));
    CHECK_FALSE(has("tensor overlap"));
    step.framework.host = {};
    step.framework.tensor_overlap = 0.3;
    CHECK_FALSE(has("host"));
    CHECK(has("tensor overlap"));
}

TEST_CASE("a step of nothing but launches is as fast as the host") {
    // One device, kernels of next to no time: 1 / 1.05 of the host is 1 / 1.05 of the step.
    TrainingStep step = pure_compute();
    step.device.peak = 1e30;
    step.framework.host = {
        .forward_launch = 40_us, .backward_launch = 20_us, .micro_batch = 500_us, .step = 5_ms};
    CHECK(value_of(uncertainty_of(step, cluster(1, 1)), "host") ==
          doctest::Approx(-1).epsilon(1e-3));
}

TEST_CASE("the interval is that of a lognormal step time") {
    const TrainingStep step = mixed(2, 4);
    const Graph graph = cluster(2, 4);
    const Result<Evaluation> made = evaluate(step, graph, {.uncertainty = true});
    REQUIRE(made.has_value());
    REQUIRE(made->uncertainty.has_value());
    const Uncertainty& found = *made->uncertainty;
    double variance = 0.025 * 0.025;  // the model's own
    for (const Doubt& doubt : doubts_of(step, graph)) variance += doubt.spread * doubt.spread;
    for (const Elasticity& one : found.elasticities) {
        variance += one.value * one.spread * one.value * one.spread;
    }
    CHECK(found.sigma == doctest::Approx(std::sqrt(variance)).epsilon(1e-12));
    const Duration time = made->measures.step_time;
    CHECK(found.low == scale(time, std::exp(-1.645 * found.sigma)));
    CHECK(found.high == scale(time, std::exp(1.645 * found.sigma)));
    CHECK(found.low < time);
    CHECK(time < found.high);
    for (std::size_t i = 1; i < found.elasticities.size(); ++i) {
        CHECK(std::abs(found.elasticities[i - 1].value) >= std::abs(found.elasticities[i].value));
    }
}

TEST_CASE("folded or not, a step is as sensitive") {
    const TrainingStep step = mixed(2, 4);
    const Uncertainty folded = uncertainty_of(step, cluster(2, 4));
    const Uncertainty whole = uncertainty_of(step, without_blocks(2, 4));
    CHECK(folded.sigma == whole.sigma);
    CHECK(folded.low == whole.low);
    REQUIRE(folded.elasticities.size() == whole.elasticities.size());
    for (std::size_t i = 0; i < folded.elasticities.size(); ++i) {
        CHECK(folded.elasticities[i].name == whole.elasticities[i].name);
        CHECK(folded.elasticities[i].value == whole.elasticities[i].value);
    }
}

TEST_CASE("a large step that cannot be folded is not simulated again and again") {
    const TrainingStep step = mixed(1, 4);
    const Graph neighbours = ring(4, {25_GBps, 1_us, 1.0});
    CHECK(uncertainty(step, neighbours, 1_ms, 2'000'000).has_value());
    CHECK_FALSE(uncertainty(step, neighbours, 1_ms, 2'000'001).has_value());
    // Folded it is small, whatever the whole would be.
    CHECK(uncertainty(step, cluster(1, 4), 1_ms, 2'000'001).has_value());
}

TEST_CASE("a slow device is left out where the others can be folded") {
    TrainingStep step = mixed(2, 2);
    const Graph graph = cluster(1, 4);
    const auto even = uncertainty(step, graph, 1_ms, 10'000'000);
    step.slow_devices = {{.device = 1, .factor = 2}};
    const auto slow = uncertainty(step, graph, 1_ms, 10'000'000);
    REQUIRE(even.has_value());
    REQUIRE(slow.has_value());
    CHECK(even->sigma == slow->sigma);
}

}  // namespace fourfold
