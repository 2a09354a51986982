#include "results/evaluate.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/training.hpp"

namespace fourfold {
namespace {

Evaluation evaluated(const TrainingStep& step, const Graph& graph,
                     LinkModel links = LinkModel::flows) {
    REQUIRE(check(step, graph.devices().size()).has_value());
    Result<Evaluation> made = evaluate(step, graph, {.links = links, .audit = true});
    REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().what));
    check_bounds(graph, made->lowered.program, made->timeline);
    return std::move(*made);
}

using Lines = std::vector<std::string>;

Lines warnings(const TrainingStep& step, const Graph& graph) {
    return evaluated(step, graph).warnings;
}

TrainingStep data_step(std::int64_t ranks) {
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    step.split.data = ranks;
    set_micro_batches(step, 2);
    return step;
}

}  // namespace

TEST_CASE("an evaluation is the step, simulated, audited and measured") {
    TrainingStep step = data_step(4);
    for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
        const Graph graph = cluster(1, 4);
        const Evaluation made = evaluated(step, graph, links);
        CHECK(made.measures.step_time == made.timeline.finish.time_since_epoch());
        CHECK(made.tasks == made.lowered.program.tasks());
        CHECK(made.events == made.timeline.events);
        CHECK(made.events > 0);
        CHECK(made.seconds >= 0);
        CHECK(made.peak_memory > 0);
        CHECK(made.traffic.size() == 1);
        CHECK(made.warnings.empty());
        // Without the audit, nothing else changes.
        const auto plain = evaluate(step, graph, {.links = links, .audit = false});
        REQUIRE(plain.has_value());
        CHECK(plain->measures.step_time == made.measures.step_time);
        CHECK(plain->events == made.events);
    }
}

TEST_CASE("a step is slower where ecmp's paths collide on a fat tree") {
    // 4 leaves of 4 devices and 4 spines. Each tensor group has a device on each leaf, so that four
    // rings leave every leaf at once: one spine each when balanced. Their pieces are large enough
    // (2 MiB) to fill a link.
    TrainingStep step = step_of(gpt(2, 2048, 16, 1000, 2048));
    step.split.tensor = step.split.data = 4;
    step.split.order = order_of({SplitAxis::data, SplitAxis::tensor, SplitAxis::pipeline});
    step.algorithm = *find_algorithm("ring");
    set_micro_batches(step, 2);
    ClusterShape shape{.nodes = 16, .devices_per_node = 1, .node = {}, .fabric = {}};
    shape.fabric = fabric_of("fat_tree", {25_GBps, 2500_ns, 1.0});
    shape.fabric->parameters.leaf_ports = 4;
    const auto with = [&shape](const Routing& routing) {
        auto draft = build_cluster(shape);
        REQUIRE(draft.has_value());
        draft->routing = routing;
        Result<Graph> graph = seal(std::move(*draft));
        REQUIRE(graph.has_value());
        return std::move(*graph);
    };
    for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
        const Duration balanced = evaluated(step, with({}), links).measures.step_time;
        for (const std::uint64_t seed : {0, 1, 2}) {
            const Graph graph = with({.kind = Routing::Kind::ecmp, .seed = seed});
            CHECK(evaluated(step, graph, links).measures.step_time > balanced);
        }
    }
}

TEST_CASE("messages of others slow a step, and are no part of it") {
    TrainingStep step = data_step(4);
    const Graph graph = cluster(2, 2);
    for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
        step.background.clear();
        const Evaluation quiet = evaluated(step, graph, links);
        CHECK(quiet.background.empty());
        // Back to back on the port that gradients take from node 0 to node 1, without end.
        step.background = {{.from = DeviceId{1}, .to = DeviceId{2}, .bytes = 1_MiB, .every = 1_us}};
        const Evaluation noisy = evaluated(step, graph, links);
        CHECK(noisy.measures.step_time > quiet.measures.step_time);
        CHECK(noisy.background.at(0) > 0);
        CHECK_FALSE(noisy.lowered.folded);
        REQUIRE(noisy.traffic.size() == quiet.traffic.size());
        for (std::size_t i = 0; i < noisy.traffic.size(); ++i) {
            CHECK(noisy.traffic[i].wire_bytes == quiet.traffic[i].wire_bytes);
            CHECK(noisy.traffic[i].operations == quiet.traffic[i].operations);
        }
        // Where nobody else sends, it is not felt.
        step.background = {
            {.from = DeviceId{0}, .to = DeviceId{1}, .bytes = 1_B, .at = 1'000'000_ms}};
        CHECK(evaluated(step, graph, links).measures.step_time == quiet.measures.step_time);
    }
}

TEST_CASE("devices without work and links without traffic are warned of") {
    // SimAI #208: more devices, the same answer. 8 devices, of which 2 work: their 2 links each way
    // to the switch carry gradients, 12 of 16 nothing.
    CHECK(warnings(data_step(2), cluster(1, 8)) ==
          Lines{"6 of 8 devices have no work: the split uses 2 (device 2 is in no group)",
                "12 of 16 links carry nothing, for example node0.device2 -> node0.switch"});
}

TEST_CASE("links without traffic are counted alike, folded or not") {
    // 8 of 16 devices work, below 2 of 4 leaves of 2 uplinks: of 64 own links and 16 of the leaves
    // half carry gradients.
    TrainingStep step = data_step(8);
    step.algorithm = *find_algorithm("ring");
    const Graph graph = cluster_of(8, 2, "fat_tree", {.oversubscription = 2, .leaf_ports = 4});
    const Lines expected{"8 of 16 devices have no work: the split uses 8 (device 8 is in no group)",
                         "40 of 80 links carry nothing, for example node4.device0 -> node4.switch"};
    for (const bool fold : {false, true}) {
        const Result<Evaluation> made = evaluate(step, graph, {.fold = fold});
        REQUIRE(made.has_value());
        CHECK(made->lowered.folded == fold);
        CHECK(made->warnings == expected);
    }
}

TEST_CASE("a step without communication says so") {
    // astra-sim #207: whatever the bandwidth, the same cycles.
    CHECK(warnings(data_step(1), cluster(1, 2)) ==
          Lines{"1 of 2 devices have no work: the split uses 1 (device 1 is in no group)",
                "no link carries anything: the step has no communication"});
}

TEST_CASE("figures outside the range of their models are warned of") {
    TrainingStep step = data_step(2);
    const Graph graph = cluster(1, 2);
    step.device.fitted = false;
    step.device.name = "P100";
    CHECK(warnings(step, graph) == Lines{"P100: kernel times follow the data sheet, no kernels of "
                                         "this device were measured"});
    step.device.fitted = true;
    step.model.heads = step.model.kv_heads = 64;  // 4 wide
    CHECK(warnings(step, graph) ==
          Lines{"a head dimension of 4 is no multiple of 8: its attention is taken to run at 12 "
                "TFLOP/s of an A100"});
    step.model.heads = step.model.kv_heads = 8;
    step.model.sequence = 4096;
    CHECK(warnings(step, graph) ==
          Lines{"unfused attention at a sequence of 4096: the fused softmax ends at 2048, slower "
                "kernels are assumed"});
    step.model.attention = Attention::flash;
    CHECK(warnings(step, graph).empty());
}

TEST_CASE("tensor parallelism across nodes is warned of, whichever way it comes about") {
    TrainingStep step = data_step(1);
    step.split.tensor = 4;
    set_micro_batches(step, 2);
    const Lines expected{
        "tensor parallelism of 4 spans nodes of 2: few measurements exist of this"};
    CHECK(warnings(step, cluster(2, 2)) == expected);

    // Tensor groups would fit a node, but the order puts data there.
    step.split.tensor = 2;
    step.split.data = 2;
    set_micro_batches(step, 2);
    CHECK(warnings(step, cluster(2, 2)).empty());
    step.split.order = order_of({SplitAxis::data, SplitAxis::tensor, SplitAxis::pipeline});
    CHECK(warnings(step, cluster(2, 2)) ==
          Lines{"tensor parallelism of 2 spans nodes of 2: few measurements exist of this"});
}

TEST_CASE("an MFU above 1 is warned of") {
    TrainingStep step = step_of(llama3_8b());
    set_stage_times(step, {.forward = 1_us, .input_gradient = 1_us, .weight_gradient = 1_us});
    set_micro_batches(step, 1);
    const Lines found = warnings(step, cluster(1, 1));
    REQUIRE_FALSE(found.empty());
    CHECK(found.back() == "MFU is above 100 %: a measured time or a peak is wrong");
}

TEST_CASE("an algorithm that does not do what the step needs is warned of") {
    TrainingStep step = data_step(2);
    step.split.sharding = Sharding::weights;
    step.algorithm = *find_algorithm("tree");
    const Lines found = warnings(step, cluster(1, 2));
    REQUIRE_FALSE(found.empty());
    CHECK(found.back() ==
          "tree does all_reduce and broadcast, in which all members get the same; where each gets "
          "its own part, ring and direct send fewer bytes: auto chooses instead");
}

}  // namespace fourfold
