#include "results/traffic.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/training.hpp"

namespace fourfold {
namespace {

std::vector<TrafficRow> rows_of(const TrainingStep& step, const Graph& graph,
                                LinkModel links = LinkModel::flows) {
    const Run run = run_step(step, graph, links);
    return traffic(graph, run.lowered, run.timeline);
}

TrafficRow row_of(const std::vector<TrafficRow>& rows, Axis axis, std::string_view operation) {
    for (const TrafficRow& row : rows) {
        if (row.axis == axis && row.operation == operation) return row;
    }
    FAIL("no row " << name_of(axis) << " " << operation);
    return {};
}

Graph one_node(std::uint32_t devices, BytesPerSecond bandwidth, Duration latency) {
    ClusterShape shape;
    shape.devices_per_node = devices;
    shape.node = fabric_of("switch", {bandwidth, latency, 1.0});
    return seal_cluster(shape);
}

bool within_one_percent(double value, double target) {
    return std::abs(value - target) <= 0.01 * target;
}

}  // namespace

TEST_CASE("the course's data row: 1 message of 20 MB, and no kernel waits for it") {
    // A vision transformer of 9.98 M parameters, 16-bit gradients in one bucket. Bytes and
    // operations are the same on 16 devices as on the table's 1,024.
    TrainingStep step = step_of(gpt(12, 256, 4, 896, 197));
    step.model.tied_embeddings = step.model.dropout = false;
    step.split.data = 16;
    step.micro_batch = 32;
    step.bucket = {std::int64_t{1} << 30};
    step.gradient_bytes = 2;
    step.gradient_norm = false;
    set_micro_batches(step, 1);
    const auto rows = rows_of(step, cluster(16, 1));
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].axis == Axis::data);
    CHECK(rows[0].operation == "all_reduce");
    CHECK(rows[0].operations == 1);
    CHECK(within_one_percent(rows[0].bytes_per_operation(), 20e6));
    CHECK_FALSE(rows[0].blocking);
    CHECK_FALSE(rows[0].point_to_point);
}

TEST_CASE("the course's tensor row: 160 messages of 100 MB, and the next kernel waits") {
    // Megatron's 18.4B body: 40 layers * 4; 4 * 2048 * 6144 * 2 B = 100,663,296 B.
    TrainingStep step = step_of(gpt(40, 6144, 48, 256, 2048));
    step.model.dropout = false;
    step.split.tensor = 8;
    step.split.vocabulary_parallel = false;
    step.micro_batch = 4;
    step.gradient_norm = false;
    step.algorithm = *find_algorithm("ring");
    set_micro_batches(step, 1);
    const auto rows = rows_of(step, one_node(8, 450_GBps, 750_ns));
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].axis == Axis::tensor);
    CHECK(rows[0].operation == "all_reduce");
    CHECK(rows[0].operations == 160);
    CHECK(rows[0].bytes_min.value == 100'663'296);
    CHECK(rows[0].bytes_max.value == 100'663'296);
    CHECK(within_one_percent(rows[0].bytes_per_operation(), 100e6));
    CHECK(rows[0].wire_bytes.value == std::int64_t{160} * 14 * (100'663'296 / 8));
    CHECK(rows[0].blocking);
    CHECK(rows[0].link_share == 1);
}

TEST_CASE("the course's pipeline row: 6 messages of 30 MB, and the sender does not wait") {
    // A middle stage sends 3 activations on and 3 gradients back, of 3 * 2048 * 2432 * 2 B =
    // 29,884,416 B.
    TrainingStep step = step_of(gpt(32, 2432, 19, 256, 2048));
    step.model.tied_embeddings = step.model.dropout = false;
    step.model.attention = Attention::flash;
    step.split.pipeline = 16;
    step.micro_batch = 3;
    step.gradient_norm = false;
    set_micro_batches(step, 3);
    const auto rows = rows_of(step, cluster(16, 1));
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].axis == Axis::pipeline);
    CHECK(rows[0].operation == "send");
    CHECK(rows[0].operations == 6);
    CHECK(rows[0].bytes_per_operation() == 29'884'416);
    CHECK(within_one_percent(rows[0].bytes_per_operation(), 30e6));
    CHECK(rows[0].wire_bytes.value == 6 * 29'884'416);
    CHECK_FALSE(rows[0].blocking);
    CHECK(rows[0].point_to_point);
    CHECK(rows[0].device.value == 1);  // the first of the middle stages
}

TEST_CASE("the course's sharded row: 3 messages of 60 MB, and kernels wait for the gathers") {
    // 29.87 M parameters in one unit, of 2 bytes each.
    TrainingStep step = step_of(gpt(6, 640, 10, 256, 2048));
    step.model.tied_embeddings = step.model.dropout = false;
    step.model.positions = Positions::rotary;
    step.model.attention = Attention::flash;
    step.split.data = 64;
    step.split.sharding = Sharding::weights;
    step.split.shard_unit = ShardUnit::model;
    step.micro_batch = 4;
    step.gradient_bytes = 2;
    step.gradient_norm = false;
    set_micro_batches(step, 1);
    const auto rows = rows_of(step, one_node(64, 640_GBps, 500_ns));
    REQUIRE(rows.size() == 2);
    const TrafficRow gather = row_of(rows, Axis::sharding, "all_gather");
    const TrafficRow scatter = row_of(rows, Axis::sharding, "reduce_scatter");
    CHECK(gather.operations == 2);
    CHECK(gather.blocking);
    CHECK(within_one_percent(gather.bytes_per_operation(), 60e6));
    CHECK(scatter.operations == 1);
    CHECK_FALSE(scatter.blocking);
    CHECK(within_one_percent(scatter.bytes_per_operation(), 60e6));
}

TEST_CASE("wire bytes of Llama 3 8B are those of the formulas, for every kind of sharding") {
    // P = 8,030,261,248: all-reduce of bf16 4 (n - 1) / n P; ZeRO-1 with fp32 gradients, and ZeRO-3
    // with bf16 6 (n - 1) / n P. One micro-batch of one sequence.
    const struct {
        std::int64_t ranks, reduce, sharded;
    } cases[] = {{2, 16'060'522'496, 24'090'783'744},
                 {8, 28'105'914'368, 42'158'871'552},
                 {64, 31'619'153'664, 47'428'730'496}};
    for (const auto& [ranks, reduce, sharded] : cases) {
        const Graph graph = one_node(static_cast<std::uint32_t>(ranks), 300_GBps, 1_us);
        const auto wire_bytes = [&](Sharding sharding, std::int64_t gradient_bytes) {
            TrainingStep step = step_of(llama3_8b());
            step.split.data = ranks;
            step.split.sharding = sharding;
            step.gradient_bytes = gradient_bytes;
            step.gradient_norm = false;
            step.algorithm = *find_algorithm("ring");
            set_micro_batches(step, 1);
            std::int64_t sum = 0;
            for (const TrafficRow& row : rows_of(step, graph)) {
                if (row.axis == Axis::data || row.axis == Axis::sharding) {
                    sum += row.wire_bytes.value;
                }
            }
            return sum;
        };
        CHECK(wire_bytes(Sharding::none, 2) == reduce);
        CHECK(wire_bytes(Sharding::optimizer, 2) == reduce);
        CHECK(wire_bytes(Sharding::optimizer, 4) == sharded);
        CHECK(wire_bytes(Sharding::gradients, 4) == sharded);
        // Embedding and head are gathered once, not twice: (n - 1) / n of 2 * 1,050,677,248 less.
        CHECK(wire_bytes(Sharding::weights, 2) ==
              sharded - 2 * 1'050'677'248 / ranks * (ranks - 1));
    }
}

TEST_CASE("layers, vocabulary, norm and pipeline have rows of their own") {
    // 4 layers of 64 on each of 2 stages; tensor 2; 2 micro-batches of 32 tokens: A = 4096 bytes.
    TrainingStep step = step_of(gpt(8, 64, 4, 512, 32));
    step.split.tensor = step.split.pipeline = 2;
    set_micro_batches(step, 2);
    const auto rows = rows_of(step, one_node(4, 300_GBps, 1_us));
    CHECK(std::is_sorted(rows.begin(), rows.end(),
                         [](const TrafficRow& a, const TrafficRow& b) { return a.axis < b.axis; }));
    const TrafficRow tensor = row_of(rows, Axis::tensor, "all_reduce");
    CHECK(tensor.operations == 2 * 4 * 4);
    CHECK(tensor.bytes.value == 32 * 4096);
    CHECK(tensor.blocking);
    // First stage: 2 lookups of A, and tied gradients of 256 * 64 * 4 = 65,536 B. Last stage: 2
    // head gradients of A, 6 sums of 128 B, the tied gradients too: it is the busiest.
    const TrafficRow vocabulary = row_of(rows, Axis::vocabulary, "all_reduce");
    CHECK(vocabulary.operations == 2 + 6 + 1);
    CHECK(vocabulary.bytes_min.value == 128);
    CHECK(vocabulary.bytes_max.value == 65'536);
    CHECK(vocabulary.device.value == 2);
    // 2 messages of A / 2, and their receivers gather.
    CHECK(row_of(rows, Axis::pipeline, "send").operations == 2);
    CHECK(row_of(rows, Axis::pipeline, "send").bytes.value == 2 * 2048);
    CHECK(row_of(rows, Axis::pipeline, "all_gather").operations == 2);
    CHECK(row_of(rows, Axis::pipeline, "all_gather").blocking);
    const TrafficRow norm = row_of(rows, Axis::norm, "all_reduce");
    CHECK(norm.operations == 1);
    CHECK(norm.bytes.value == 4);
    CHECK_FALSE(norm.blocking);  // only the optimizer waits
    CHECK(rows.size() == 5);
}

TEST_CASE("with sequence parallelism a layer has 6 gathers and 4 reduce-scatters") {
    TrainingStep step = step_of(gpt(8, 64, 4, 512, 32));
    step.split.tensor = 2;
    set_micro_batches(step, 3);
    step.split.sequence_parallel = true;
    const auto rows = rows_of(step, one_node(2, 300_GBps, 1_us));
    CHECK(row_of(rows, Axis::tensor, "all_gather").operations == 3 * 8 * 6);
    CHECK(row_of(rows, Axis::tensor, "reduce_scatter").operations == 3 * 8 * 4);
    CHECK(row_of(rows, Axis::tensor, "all_gather").blocking);
    CHECK(row_of(rows, Axis::tensor, "reduce_scatter").blocking);
    CHECK(row_of(rows, Axis::tensor, "all_reduce").operations == 1);  // gradients of the norms
}

TEST_CASE("a bucket can hide behind what computes between its issue and the optimizer") {
    TrainingStep step = step_of(gpt(1, 8, 1, 128, 4));
    step.split.data = 2;
    step.algorithm = *find_algorithm("ring");
    set_stage_times(step, {.forward = 10_us, .input_gradient = 12_us, .weight_gradient = 8_us});
    set_micro_batches(step, 2);
    const Graph graph = one_node(2, 1_GBps, 1_us);
    // Of a measured stage all gradients are complete at its end: nothing to hide behind.
    const TrafficRow late = row_of(rows_of(step, graph), Axis::data, "all_reduce");
    CHECK(late.window == Duration::zero());
    CHECK(late.transfer == 2 * (3'888_ns + 2_us));
    CHECK(graph.name(late.link) == "node0.device0 -> node0.switch");
    CHECK(late.link_share == 1);
    CHECK(late.wire_bytes.value == 7'776);
    // Sharded gradients are reduced in each micro-batch: the first behind the second's 30 us.
    step.split.sharding = Sharding::gradients;
    step.overlap_parameters = false;
    const auto rows = rows_of(step, graph);
    const TrafficRow early = row_of(rows, Axis::data, "reduce_scatter");
    CHECK(early.operations == 2);
    CHECK(early.window == 30_us);
    CHECK_FALSE(early.blocking);
    // The same without overlap: the next forward waits.
    step.overlap_gradients = false;
    const TrafficRow waits = row_of(rows_of(step, graph), Axis::data, "reduce_scatter");
    CHECK(waits.window == Duration::zero());
    CHECK(waits.blocking);
}

TEST_CASE("both link models count the same bytes") {
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    step.split.tensor = step.split.pipeline = 2;
    step.split.data = 4;
    step.split.sharding = Sharding::weights;
    set_micro_batches(step, 4);
    const Graph graph = cluster(2, 8);
    const auto flows = rows_of(step, graph, LinkModel::flows);
    const auto messages = rows_of(step, graph, LinkModel::messages);
    REQUIRE(flows.size() == messages.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
        CHECK(flows[i].axis == messages[i].axis);
        CHECK(flows[i].operation == messages[i].operation);
        CHECK(flows[i].operations == messages[i].operations);
        CHECK(flows[i].wire_bytes == messages[i].wire_bytes);
        CHECK(flows[i].blocking == messages[i].blocking);
        CHECK(flows[i].link_share > 0);
        CHECK(flows[i].link_share <= 1);
    }
}

}  // namespace fourfold
