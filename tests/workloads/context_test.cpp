#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/training.hpp"
#include "workloads/axes/axes.hpp"
#include "workloads/stage.hpp"

namespace fourfold {
namespace {

using Operations = std::vector<Operation>;

/// 2 layers of 64, 4 heads of 16, a vocabulary of 512, a sequence of 32 on 4 context ranks: 8
/// tokens each.
TrainingStep context_step() {
    TrainingStep step = step_of(gpt(2, 64, 4, 512, 32));
    step.split.context = 4;
    return step;
}

Operations operations(const TrainingStep& step, ActionKind kind, std::int64_t stage = 0,
                      bool first = false, bool last = false) {
    return stage_operations(step, {.stage = stage, .kind = kind, .first = first, .last = last});
}

Operations of_axis(const Operations& list, Axis axis) {
    Operations found;
    std::ranges::copy_if(list, std::back_inserter(found),
                         [&](const Operation& operation) { return operation.axis == axis; });
    return found;
}

/// "gather core core^ ...": attention cores and the collectives of the context axis; "^" waits for
/// the collective before it, "qkv^" for the gradients that come back.
std::string outline(const Operations& list) {
    std::string text;
    std::int32_t gathered = -1, scattered = -1;
    for (const Operation& operation : list) {
        std::string word;
        if (operation.axis == Axis::context) {
            const bool gathers = operation.collective == CollectiveKind::all_gather;
            CHECK_FALSE(operation.blocking);
            (gathers ? gathered : scattered) = operation.ticket;
            word = gathers ? "gather" : "scatter";
        } else if (operation.axis == Axis::compute && operation.site == Site::attention_core) {
            word = operation.waits_for == std::vector{gathered} ? "core^" : "core";
        } else if (operation.axis == Axis::compute && operation.site == Site::attention_qkv &&
                   operation.waits_for == std::vector{scattered}) {
            word = "qkv^";
        } else {
            continue;
        }
        text += (text.empty() ? "" : " ") + word;
    }
    return text;
}

double flops_of(const Operations& list) {
    double sum = 0;
    for (const Operation& operation : list) sum += operation.flops;
    return sum;
}

double seconds_of(const Operations& list, Site site) {
    double sum = 0;
    for (const Operation& operation : list) {
        if (operation.axis == Axis::compute && operation.site == site) sum += operation.seconds;
    }
    return sum;
}

}  // namespace

TEST_CASE("keys and values are gathered beside the first part of attention") {
    const TrainingStep step = context_step();
    CHECK(outline(operations(step, ActionKind::forward)) == "gather core core^ gather core core^");
    // Backward they come again, and their gradients go back while the rest of the core runs.
    CHECK(outline(operations(step, ActionKind::backward)) ==
          "gather core scatter core^ qkv^ gather core scatter core^ qkv^");
    // Nobody waits for what is not there: without context ranks there is one core and no exchange.
    TrainingStep whole = step;
    whole.split.context = 1;
    CHECK(outline(operations(whole, ActionKind::forward)) == "core core");
}

TEST_CASE("recomputed attention gathers keys and values again") {
    TrainingStep step = context_step();
    step.model.layers = 1;
    step.recompute = Recompute::selective;
    CHECK(outline(operations(step, ActionKind::backward)) ==
          "gather core core^ gather core scatter core^ qkv^");
    step.recompute = Recompute::full;
    CHECK(outline(operations(step, ActionKind::backward)) ==
          "gather core core^ gather core scatter core^ qkv^");
}

TEST_CASE("an exchange has the keys and values of the whole sequence on one tensor rank") {
    // 2 * 32 tokens * 4 heads * 16 * 2 bytes = 8,192, in each of 2 layers.
    TrainingStep step = context_step();
    const auto check_bytes = [&](Bytes expected) {
        for (const ActionKind kind : {ActionKind::forward, ActionKind::backward}) {
            for (const Operation& one : of_axis(operations(step, kind), Axis::context)) {
                CHECK(one.bytes == expected);
                CHECK(one.group == Group::context);
            }
        }
        CHECK(of_axis(operations(step, ActionKind::forward), Axis::context).size() == 2);
        CHECK(of_axis(operations(step, ActionKind::backward), Axis::context).size() == 4);
    };
    check_bytes(8192_B);
    step.micro_batch = 3;
    check_bytes(3 * 8192_B);
    step.split.tensor = 2;
    check_bytes(3 * 4096_B);
    step.model.kv_heads = 1;  // both tensor ranks have the one
    check_bytes(3 * 2048_B);
}

TEST_CASE("tokens and scores are cut by the context ranks and so are FLOPs") {
    TrainingStep step = context_step();
    CHECK(step.tokens() == 8);
    CHECK(activation_bytes(step) == 1024_B);  // 8 * 64 * 2
    for (const Attention attention : {Attention::unfused, Attention::flash}) {
        step.model.attention = attention;
        TrainingStep whole = step;
        whole.split.context = 1;
        for (const ActionKind kind : {ActionKind::forward, ActionKind::backward}) {
            CHECK(4 * flops_of(operations(step, kind)) ==
                  doctest::Approx(flops_of(operations(whole, kind))).epsilon(1e-12));
        }
    }
    // The parts of a core are a quarter and the rest of it.
    Operations cores = operations(step, ActionKind::forward);
    std::erase_if(cores, [](const Operation& one) {
        return one.site != Site::attention_core || one.axis != Axis::compute;
    });
    REQUIRE(cores.size() == 4);
    CHECK(3 * cores[0].seconds == doctest::Approx(cores[1].seconds).epsilon(1e-12));
    CHECK(3 * cores[0].flops == doctest::Approx(cores[1].flops).epsilon(1e-12));

    // On a device that starts kernels in no time, the bytes of unfused scores are a quarter too.
    step.model.attention = Attention::unfused;
    step.device.memory_launch_s = step.device.gemm.launch_s = 0;
    step.device.gemm.k_ramp = 0;
    TrainingStep whole = step;
    whole.split.context = 1;
    CHECK(
        4 * seconds_of(operations(step, ActionKind::forward), Site::attention_norm) ==
        doctest::Approx(seconds_of(operations(whole, ActionKind::forward), Site::attention_norm)));
}

TEST_CASE("gradients are reduced over data and context ranks together") {
    // Layer 12 * 64^2 + 13 * 64 = 49,984, outer 32,768 + 2,048 + 128 = 34,944: 2 layers, 4 bytes.
    TrainingStep step = context_step();
    step.split.data = 2;
    CHECK(step.split.replicas() == 8);
    const Operations reduced =
        of_axis(operations(step, ActionKind::backward, 0, false, true), Axis::data);
    REQUIRE(reduced.size() == 1);
    CHECK(reduced[0].collective == CollectiveKind::all_reduce);
    CHECK(reduced[0].group == Group::replicas);
    CHECK(reduced[0].bytes == 539'648_B);
    // Context ranks alone hold the same weights too.
    step.split.data = 1;
    CHECK(of_axis(operations(step, ActionKind::backward, 0, false, true), Axis::data).size() == 1);
}

TEST_CASE("ZeRO shards over data and context ranks together") {
    TrainingStep step = context_step();
    step.split.data = 2;
    const auto optimizer_seconds = [&] {
        return seconds_of(tail_operations(step, 0), Site::optimizer) - step.device.memory_launch_s;
    };
    const double whole = optimizer_seconds();
    for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::weights}) {
        step.split.sharding = sharding;
        CHECK(8 * optimizer_seconds() == doctest::Approx(whole).epsilon(1e-9));
    }
    for (const Operation& one : of_axis(operations(step, ActionKind::forward), Axis::sharding)) {
        CHECK(one.group == Group::replicas);
        CHECK(one.collective == CollectiveKind::all_gather);
    }
    // 3 units, whole: 2 bytes of 34,944 and twice of 49,984 parameters.
    Bytes gathered{};
    for (const Operation& one : of_axis(operations(step, ActionKind::forward), Axis::sharding)) {
        gathered += one.bytes;
    }
    CHECK(gathered == 2 * (34'944_B + 2 * 49'984_B));
}

TEST_CASE("messages between stages carry the tokens of one context rank") {
    TrainingStep step = context_step();
    step.split.pipeline = 2;
    CHECK(pipeline_message_bytes(step) == 1024_B);
    step.split.tensor = 2;
    CHECK(pipeline_message_bytes(step) == 512_B);
    step.split.scatter_gather = false;
    CHECK(pipeline_message_bytes(step) == 1024_B);
}

TEST_CASE("a step on context ranks sends each of its groups what belongs there") {
    // 4 context x 2 data ranks, one layer, on ideal links: 2 gathers and a reduce-scatter of 8,192
    // B in the context group, ring: 3 / 4 of it out of each port; then the gradients of all 8.
    TrainingStep step = context_step();
    step.model.layers = 1;
    step.split.data = 2;
    step.algorithm = *find_algorithm("ring");
    step.gradient_norm = false;
    set_micro_batches(step, 1);
    const Graph graph = cluster(1, 8);
    const Run run = run_step(step, graph);
    // Ring of 8: 2 * 7 pieces of ceil(339,712 / 8) B.
    for (const LinkId link : run.timeline.carried.keys()) {
        CHECK(run.timeline.carried[link] == 3 * 6144_B + 14 * 42'464_B);
    }
    for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
        const Run other = run_step(step, graph, links);
        CHECK(other.timeline.carried[LinkId{0}] == run.timeline.carried[LinkId{0}]);
    }
}

}  // namespace fourfold
