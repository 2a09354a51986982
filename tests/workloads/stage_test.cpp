#include "workloads/stage.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/training.hpp"
#include "workloads/axes/axes.hpp"

namespace fourfold {
namespace {

using Operations = std::vector<Operation>;

/// 4 layers of 64, 4 heads, a vocabulary of 512, a sequence of 32: A = 32 * 64 * 2 = 4096 bytes.
TrainingStep small_step() { return step_of(gpt(4, 64, 4, 512, 32)); }

Operations operations(const TrainingStep& step, ActionKind kind, std::int64_t stage = 0,
                      bool first = false, bool last = false) {
    return stage_operations(step, {.stage = stage, .kind = kind, .first = first, .last = last});
}

std::ptrdiff_t count(
    const Operations& list, Axis axis,
    const std::function<bool(const Operation&)>& also = [](auto&) { return true; }) {
    return std::count_if(list.begin(), list.end(), [&](const Operation& operation) {
        return operation.axis == axis && also(operation);
    });
}

std::ptrdiff_t count(const Operations& list, Axis axis, CollectiveKind kind) {
    return count(list, axis, [&](const Operation& one) { return one.collective == kind; });
}

Bytes bytes_of(const Operations& list, Axis axis) {
    Bytes sum{};
    for (const Operation& operation : list) {
        if (operation.axis == axis) sum += operation.bytes;
    }
    return sum;
}

/// "outer gather:0 layer0 gather:1 ...": kernels of one layer in a row are one word ("outer" for
/// embedding, head, final norm), collectives are their kind and layer; "~" runs beside the chain,
/// "^" waits for a ticket.
std::string outline(const Operations& list) {
    std::string text, last;
    for (const Operation& operation : list) {
        std::string word;
        if (operation.axis == Axis::compute) {
            word = operation.layer < 0 ? "outer" : "layer" + std::to_string(operation.layer);
            if (word == last && operation.waits_for.empty()) continue;
            last = word;
        } else {
            word = operation.collective == CollectiveKind::all_gather       ? "gather"
                   : operation.collective == CollectiveKind::reduce_scatter ? "scatter"
                                                                            : "reduce";
            if (operation.layer >= 0) word += std::to_string(operation.layer);
            if (!operation.blocking) word += "~";
            last.clear();
        }
        if (!operation.waits_for.empty() || operation.waits_for_step_ticket >= 0) word += "^";
        text += (text.empty() ? "" : " ") + word;
    }
    return text;
}

bool has_operations(const Operations& list, Axis axis) { return count(list, axis) > 0; }

}  // namespace

TEST_CASE("a device's parameters are the model's when nothing is divided") {
    // Llama 3 8B has 8,030,261,248 parameters; its vocabulary of 128,256 is 1,002 * 128, not
    // padded.
    TrainingStep step = step_of(llama3_8b());
    CHECK(stage_parameters_on_device(step, 0) == 8'030'261'248.0);
    step.split.pipeline = 4;
    double sum = 0;
    for (std::int64_t stage = 0; stage < 4; ++stage) sum += stage_parameters_on_device(step, stage);
    CHECK(sum == 8'030'261'248.0);
    CHECK(has_embedding(step, 0));
    CHECK_FALSE(has_embedding(step, 3));
    CHECK(has_head(step, 3));
    CHECK(layers_of(step, 3).begin == 24);
    CHECK(layers_of(step, 3).end == 32);
}

TEST_CASE("tensor ranks share matrices, and each has the norms and the biases after the sums") {
    // h = 64, f = 256. Divided: qkv 3 h^2 + 3 h, projection h^2, first 4 h^2 + 4 h, second 4 h^2:
    // 12 * 4096 + 7 * 64 = 49,600. Whole: two layernorms 4 h, biases of projection and second 2 h:
    // 384.
    TrainingStep step = small_step();
    CHECK(layer_parameters_on_device(step) == 49'600 + 384);
    step.split.tensor = 4;
    CHECK(layer_parameters_on_device(step) == 12'400 + 384);
    // Table 512 * 64 / 4 = 8,192; positions 32 * 64 = 2,048; final norm 128; tied on one stage.
    CHECK(outer_parameters_on_device(step, 0) == 8'192 + 2'048 + 128);
    step.split.pipeline = 2;
    CHECK(outer_parameters_on_device(step, 0) == 8'192 + 2'048);
    CHECK(outer_parameters_on_device(step, 1) == 128 + 8'192);  // a copy of the tied table
    step.split.vocabulary_parallel = false;
    CHECK(outer_parameters_on_device(step, 1) == 128 + 32'768);
}

TEST_CASE("key and value heads that are fewer than the tensor ranks are copied") {
    // Llama 3 8B, t = 16, 8 kv heads of 128: keys and values of one head each, 2 * 4096 * 128 =
    // 1,048,576; queries and output 2 * 4096 * 4096 / 16 = 2,097,152; MLP 3 * 4096 * 14336 / 16 =
    // 11,010,048; norms 8,192.
    TrainingStep step = step_of(llama3_8b());
    step.split.tensor = 16;
    CHECK(layer_parameters_on_device(step) == 1'048'576 + 2'097'152 + 11'010'048 + 8'192);
}

TEST_CASE("tensor parallelism makes 4 all-reduces a layer and micro-batch, of the activation") {
    TrainingStep step = small_step();
    step.split.tensor = 2;
    const Operations forward = operations(step, ActionKind::forward);
    const Operations backward = operations(step, ActionKind::backward);
    CHECK(count(forward, Axis::tensor, CollectiveKind::all_reduce) == 2 * 4);
    CHECK(count(backward, Axis::tensor, CollectiveKind::all_reduce) == 2 * 4);
    CHECK(count(forward, Axis::tensor) + count(backward, Axis::tensor) == 4 * 4);
    CHECK(activation_bytes(step) == 4096_B);
    for (const Operation& operation : forward) {
        if (operation.axis != Axis::tensor) continue;
        CHECK(operation.bytes == 4096_B);
        CHECK(operation.blocking);
    }
}

TEST_CASE(
    "sequence parallelism makes 10 collectives a layer, 2 of them beside the input gradient") {
    TrainingStep step = small_step();
    step.split.tensor = 2;
    step.split.sequence_parallel = true;
    const Operations forward = operations(step, ActionKind::forward);
    const Operations backward = operations(step, ActionKind::backward);
    CHECK(count(forward, Axis::tensor, CollectiveKind::all_gather) == 2 * 4);
    CHECK(count(forward, Axis::tensor, CollectiveKind::reduce_scatter) == 2 * 4);
    CHECK(count(backward, Axis::tensor, CollectiveKind::all_gather) == 4 * 4);
    CHECK(count(backward, Axis::tensor, CollectiveKind::reduce_scatter) == 2 * 4);
    CHECK(count(forward, Axis::tensor) + count(backward, Axis::tensor) == 10 * 4);

    const auto beside = [](const Operation& operation) { return !operation.blocking; };
    CHECK(count(forward, Axis::tensor, beside) == 0);
    CHECK(count(backward, Axis::tensor, beside) == 2 * 4);
    for (std::size_t i = 0; i < backward.size(); ++i) {
        if (backward[i].axis != Axis::tensor || backward[i].blocking) continue;
        // [gather of the input] input gradient [its reduce-scatter] weight gradient, which waits.
        REQUIRE(i + 3 < backward.size());
        CHECK(backward[i + 1].pass == Pass::input_gradient);
        CHECK(backward[i + 1].waits_for.empty());
        CHECK(backward[i + 2].collective == CollectiveKind::reduce_scatter);
        CHECK(backward[i + 3].pass == Pass::weight_gradient);
        CHECK(backward[i + 3].site == backward[i + 1].site);
        CHECK(backward[i + 3].waits_for == std::vector<std::int32_t>{backward[i].ticket});
    }
}

TEST_CASE("full recomputation makes 6 all-reduces a layer, selective 4") {
    TrainingStep step = small_step();
    step.split.tensor = 2;
    const auto of_step = [&] {
        return count(operations(step, ActionKind::forward), Axis::tensor) +
               count(operations(step, ActionKind::backward), Axis::tensor);
    };
    step.recompute = Recompute::full;
    CHECK(of_step() == 6 * 4);
    step.recompute = Recompute::selective;
    CHECK(of_step() == 4 * 4);
    // With sequence parallelism the forward's 2 gathers and 2 reduce-scatters come again.
    step.split.sequence_parallel = true;
    step.recompute = Recompute::full;
    CHECK(of_step() == 14 * 4);
}

TEST_CASE("the halves of a split backward have the kernels and collectives of the whole") {
    for (const bool sequence_parallel : {false, true}) {
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
            TrainingStep step = small_step();
            step.split.tensor = 2;
            step.split.sequence_parallel = sequence_parallel;
            step.recompute = recompute;
            const Operations whole = operations(step, ActionKind::backward);
            const Operations input = operations(step, ActionKind::input_gradient);
            const Operations weight = operations(step, ActionKind::weight_gradient);
            for (const Axis axis : {Axis::compute, Axis::tensor, Axis::vocabulary}) {
                CHECK(count(whole, axis) == count(input, axis) + count(weight, axis));
                CHECK(bytes_of(whole, axis).value ==
                      bytes_of(input, axis).value + bytes_of(weight, axis).value);
            }
            // Weight gradients only gather their inputs: nobody upstream waits for them.
            CHECK(count(weight, Axis::tensor) == (sequence_parallel ? 2 * 4 : 0));
        }
    }
}

TEST_CASE("a divided vocabulary has collectives at embedding, head and loss") {
    TrainingStep step = small_step();
    step.split.tensor = 2;
    const auto vocabulary = [&](ActionKind kind, CollectiveKind collective) {
        return count(operations(step, kind), Axis::vocabulary, collective);
    };
    // Forward: the sum of the lookups (A) and the loss's 3 sums of 4 bytes a token. Backward: the
    // sum of the head's input gradient (A).
    CHECK(vocabulary(ActionKind::forward, CollectiveKind::all_reduce) == 1 + 3);
    CHECK(bytes_of(operations(step, ActionKind::forward), Axis::vocabulary) == 4096_B + 3 * 128_B);
    CHECK(vocabulary(ActionKind::backward, CollectiveKind::all_reduce) == 1);
    CHECK(bytes_of(operations(step, ActionKind::backward), Axis::vocabulary) == 4096_B);

    // With sequence parallelism: scatter after the embedding, gather before the head; and back.
    step.split.sequence_parallel = true;
    CHECK(vocabulary(ActionKind::forward, CollectiveKind::reduce_scatter) == 1);
    CHECK(vocabulary(ActionKind::forward, CollectiveKind::all_gather) == 1);
    CHECK(vocabulary(ActionKind::forward, CollectiveKind::all_reduce) == 3);
    CHECK(vocabulary(ActionKind::backward, CollectiveKind::reduce_scatter) == 1);
    CHECK(vocabulary(ActionKind::backward, CollectiveKind::all_gather) == 1);

    step.split.sequence_parallel = false;
    step.split.vocabulary_parallel = false;
    CHECK_FALSE(has_operations(operations(step, ActionKind::forward), Axis::vocabulary));
    CHECK_FALSE(has_operations(operations(step, ActionKind::backward), Axis::vocabulary));

    // A stage in the middle has none.
    step.split.vocabulary_parallel = true;
    step.split.pipeline = 4;
    CHECK_FALSE(has_operations(operations(step, ActionKind::forward, 1), Axis::vocabulary));
    CHECK(has_operations(operations(step, ActionKind::forward, 3), Axis::vocabulary));
}

TEST_CASE("gradients are reduced in buckets, only in the last micro-batch's backward") {
    // Layer 49,984 parameters, outer 32,768 + 2,048 + 128 = 34,944, all tied to the embedding:
    // 4 * 199,936 + 139,776 = 939,520 bytes of fp32 gradients.
    TrainingStep step = small_step();
    step.split.data = 2;
    step.bucket = {300'000};
    for (const ActionKind kind : {ActionKind::forward, ActionKind::input_gradient}) {
        CHECK_FALSE(has_operations(operations(step, kind, 0, false, true), Axis::data));
    }
    CHECK_FALSE(has_operations(operations(step, ActionKind::backward), Axis::data));
    const Operations last = operations(step, ActionKind::backward, 0, false, true);
    CHECK(bytes_of(last, Axis::data) == 939'520_B);
    CHECK(count(last, Axis::data, CollectiveKind::all_reduce) == 4);  // 3 of 300,000 and 39,520
    // 300,000 bytes are complete with layer 2, 600,000 with layer 0 (799,744), 900,000 at the end.
    CHECK(outline(last) ==
          "outer layer3 layer2 reduce~ layer1 layer0 reduce~ outer reduce~ reduce~");

    // The weight gradients' half makes them in a split backward.
    CHECK(bytes_of(operations(step, ActionKind::weight_gradient, 0, false, true), Axis::data) ==
          939'520_B);

    step.gradient_bytes = 2;
    CHECK(bytes_of(operations(step, ActionKind::backward, 0, false, true), Axis::data) ==
          469'760_B);
}

TEST_CASE("an untied head's gradients are reduced before the layers'") {
    // Outer parameters: two tables of 32,768, positions 2,048, norm 128: 67,712, half at the head:
    // 33,856 * 4 = 135,424 bytes.
    TrainingStep step = small_step();
    step.model.tied_embeddings = false;
    step.split.data = 2;
    step.bucket = {135'424};
    CHECK(outline(operations(step, ActionKind::backward, 0, false, true))
              .starts_with("outer reduce~ layer3 reduce~ layer2"));
}

TEST_CASE("ZeRO-1 scatters once in a step, ZeRO-2 in every micro-batch") {
    TrainingStep step = small_step();
    step.split.data = 2;
    step.split.sharding = Sharding::optimizer;
    CHECK_FALSE(has_operations(operations(step, ActionKind::backward), Axis::data));
    CHECK(count(operations(step, ActionKind::backward, 0, false, true), Axis::data,
                CollectiveKind::reduce_scatter) == 1);
    step.split.sharding = Sharding::gradients;
    for (const bool last : {false, true}) {
        const Operations backward = operations(step, ActionKind::backward, 0, false, last);
        CHECK(count(backward, Axis::data, CollectiveKind::reduce_scatter) == 1);
        CHECK(bytes_of(backward, Axis::data) == 939'520_B);
    }
    // Without overlap the next micro-batch waits for it.
    CHECK(outline(operations(step, ActionKind::backward)).ends_with("scatter~"));
    step.overlap_gradients = false;
    CHECK(outline(operations(step, ActionKind::backward)).ends_with("scatter"));
    CHECK_FALSE(has_operations(tail_operations(step, 0), Axis::data));
}

TEST_CASE("without overlap, gradients are reduced after the last micro-batch") {
    TrainingStep step = small_step();
    step.split.data = 2;
    step.overlap_gradients = false;
    step.bucket = {300'000};
    step.gradient_norm = false;
    CHECK_FALSE(has_operations(operations(step, ActionKind::backward, 0, false, true), Axis::data));
    const Operations tail = tail_operations(step, 0);
    CHECK(outline(tail) == "reduce reduce reduce reduce outer");
    CHECK(bytes_of(tail, Axis::data) == 939'520_B);
}

TEST_CASE("sharded weights are gathered one unit ahead, twice, and reduced once") {
    TrainingStep step = small_step();
    step.model.layers = 3;
    step.split.data = 2;
    step.split.sharding = Sharding::weights;
    // Gathers of layer 0, 1 and 2 come while outer, 0 and 1 compute; embedding and head are one
    // unit, gathered once.
    CHECK(outline(operations(step, ActionKind::forward)) ==
          "gather~ gather0~ outer^ gather1~ layer0^ gather2~ layer1^ layer2^ outer");
    CHECK(outline(operations(step, ActionKind::backward)) ==
          "gather2~ outer gather1~ layer2^ scatter2~ gather0~ layer1^ scatter1~ layer0^ scatter0~ "
          "outer scatter~");
    CHECK(outline(operations(step, ActionKind::input_gradient)) ==
          "gather2~ outer gather1~ layer2^ gather0~ layer1^ layer0^");
    CHECK(outline(operations(step, ActionKind::weight_gradient)) ==
          "outer layer2 scatter2~ layer1 scatter1~ layer0 scatter0~ outer scatter~");

    // 3 per layer and micro-batch: 49,984 parameters, gathered as 2 bytes, reduced as 4.
    const Operations backward = operations(step, ActionKind::backward);
    for (const Operation& operation : backward) {
        if (operation.axis != Axis::sharding || operation.layer < 0) continue;
        CHECK(operation.bytes ==
              (operation.collective == CollectiveKind::all_gather ? 99'968_B : 199'936_B));
    }
    CHECK_FALSE(has_operations(operations(step, ActionKind::backward, 0, false, true), Axis::data));

    step.overlap_parameters = step.overlap_gradients = false;
    CHECK(outline(operations(step, ActionKind::forward)) ==
          "gather outer gather0 layer0 gather1 layer1 gather2 layer2 outer");
    CHECK(outline(operations(step, ActionKind::backward)) ==
          "outer gather2 layer2 scatter2 gather1 layer1 scatter1 gather0 layer0 scatter0 outer "
          "scatter");
}

TEST_CASE("a stage without embedding and head prefetches from its first layer on") {
    TrainingStep step = small_step();
    step.split.pipeline = 4;
    step.model.layers = 8;
    step.split.data = 2;
    step.split.sharding = Sharding::weights;
    CHECK(outline(operations(step, ActionKind::forward, 1)) == "gather2~ gather3~ layer2^ layer3^");
    CHECK(outline(operations(step, ActionKind::backward, 1)) ==
          "gather3~ gather2~ layer3^ scatter3~ layer2^ scatter2~");
}

TEST_CASE("one unit of all sharded weights makes 3 collectives") {
    TrainingStep step = small_step();
    step.split.data = 2;
    step.split.sharding = Sharding::weights;
    step.split.shard_unit = ShardUnit::model;
    CHECK(outline(operations(step, ActionKind::forward)) ==
          "gather~ outer^ layer0 layer1 layer2 layer3 outer");
    CHECK(outline(operations(step, ActionKind::backward)) ==
          "gather~ outer^ layer3 layer2 layer1 layer0 outer scatter~");
    // 4 * 49,984 + 34,944 parameters.
    CHECK(bytes_of(operations(step, ActionKind::forward), Axis::sharding) == 2 * 234'880_B);
}

TEST_CASE("updated parameters are gathered in the next forward, or after the optimizer") {
    TrainingStep step = small_step();
    step.model.layers = 2;
    step.split.data = 2;
    step.split.sharding = Sharding::optimizer;
    step.gradient_norm = false;
    CHECK(outline(operations(step, ActionKind::forward, 0, true)) ==
          "gather~ gather0~ gather1~ outer^ layer0^ layer1^ outer");
    CHECK_FALSE(has_operations(operations(step, ActionKind::forward), Axis::sharding));
    CHECK(outline(tail_operations(step, 0)) == "outer");

    step.overlap_parameters = false;
    CHECK_FALSE(has_operations(operations(step, ActionKind::forward, 0, true), Axis::sharding));
    CHECK(outline(tail_operations(step, 0)) == "outer gather");
    CHECK(bytes_of(tail_operations(step, 0), Axis::sharding) == 2 * (2 * 49'984_B + 34'944_B));
}

TEST_CASE("tied embeddings are summed between the first and the last stage only") {
    TrainingStep step = small_step();
    step.split.pipeline = 4;
    step.split.tensor = 2;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
        const Operations tail = tail_operations(step, rank);
        const bool at_an_end = rank == 0 || rank == 3;
        CHECK(count(tail, Axis::vocabulary) == (at_an_end ? 1 : 0));
        // 512 / 2 rows of 64 gradients of 4 bytes.
        if (at_an_end) CHECK(bytes_of(tail, Axis::vocabulary) == 65'536_B);
    }
    step.model.tied_embeddings = false;
    CHECK_FALSE(has_operations(tail_operations(step, 0), Axis::vocabulary));
    step.model.tied_embeddings = true;
    step.split.pipeline = 1;
    CHECK_FALSE(has_operations(tail_operations(step, 0), Axis::vocabulary));
}

TEST_CASE("the gradient norm is summed over all that hold different gradients") {
    TrainingStep step = small_step();
    step.split.pipeline = step.split.tensor = step.split.data = 2;
    const auto norm_of = [&]() -> std::optional<Group> {
        for (const Operation& operation : tail_operations(step, 0)) {
            if (operation.axis == Axis::norm) {
                CHECK(operation.bytes == 4_B);
                CHECK(operation.waits_for_all);
                return operation.group;
            }
        }
        return std::nullopt;
    };
    CHECK(norm_of() == Group::model);
    for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::weights}) {
        step.split.sharding = sharding;
        CHECK(norm_of() == Group::world);
    }
    step.gradient_norm = false;
    CHECK_FALSE(norm_of().has_value());
    step.gradient_norm = true;
    step.split.pipeline = step.split.tensor = 1;
    CHECK(norm_of() == Group::world);
    step.split.sharding = Sharding::none;
    CHECK_FALSE(norm_of().has_value());  // every data rank has them all
}

TEST_CASE("norms' gradients are summed over the tensor group with sequence parallelism") {
    TrainingStep step = small_step();
    step.split.tensor = 2;
    CHECK_FALSE(has_operations(tail_operations(step, 0), Axis::tensor));
    step.split.sequence_parallel = true;
    // 4 layers, 2 layernorms of a gain and a shift of 64, 4 bytes each.
    CHECK(bytes_of(tail_operations(step, 0), Axis::tensor) == 4096_B);
    step.model.norm = Norm::rmsnorm;
    CHECK(bytes_of(tail_operations(step, 0), Axis::tensor) == 2048_B);
}

TEST_CASE("a measured stage replaces kernels and tensor collectives, not gradient buckets") {
    TrainingStep step = small_step();
    const Operations modelled = operations(step, ActionKind::backward);
    step.split.tensor = step.split.data = 2;
    step.schedule = schedule_named("zb1p");
    step.measured.stage = {.forward = 10_us, .input_gradient = 12_us, .weight_gradient = 8_us};
    CHECK(outline(operations(step, ActionKind::forward, 0, true, true)) == "outer");
    CHECK(outline(operations(step, ActionKind::backward, 0, true, true)) == "outer reduce~");
    CHECK(operations(step, ActionKind::input_gradient).front().seconds == 12e-6);
    CHECK(operations(step, ActionKind::weight_gradient).front().seconds == 8e-6);
    step.chunks = 2;
    CHECK(operations(step, ActionKind::forward).front().seconds == 5e-6);  // half of the stage
    step.split.sharding = Sharding::weights;
    CHECK(outline(operations(step, ActionKind::backward, 0, true, true)) == "outer");
}

TEST_CASE("a measured stage keeps the FLOPs of the kernels that it stands for") {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        TrainingStep step = small_step();
        step.recompute = recompute;
        TrainingStep measured = step;
        measured.measured.stage = {
            .forward = 1_us, .input_gradient = 1_us, .weight_gradient = 1_us};
        for (const ActionKind kind : {ActionKind::forward, ActionKind::backward,
                                      ActionKind::input_gradient, ActionKind::weight_gradient}) {
            double flops = 0, flops_measured = 0;
            for (const Operation& one : operations(step, kind)) flops += one.flops;
            for (const Operation& one : operations(measured, kind)) flops_measured += one.flops;
            CHECK(flops_measured == doctest::Approx(flops).epsilon(1e-12));
            CHECK(flops > 0);
        }
    }
}

TEST_CASE("scatter-gather cuts a message by the tensor rank, and the receivers gather it") {
    TrainingStep step = small_step();
    step.split.pipeline = 2;
    CHECK(pipeline_message_bytes(step) == 4096_B);
    step.split.tensor = 4;
    CHECK(pipeline_message_bytes(step) == 1024_B);
    CHECK(bytes_of(operations(step, ActionKind::forward, 1), Axis::pipeline) == 4096_B);
    CHECK(bytes_of(operations(step, ActionKind::backward, 0), Axis::pipeline) == 4096_B);
    CHECK(bytes_of(operations(step, ActionKind::input_gradient, 0), Axis::pipeline) == 4096_B);
    CHECK_FALSE(has_operations(operations(step, ActionKind::forward, 0), Axis::pipeline));
    CHECK_FALSE(has_operations(operations(step, ActionKind::backward, 1), Axis::pipeline));
    CHECK_FALSE(has_operations(operations(step, ActionKind::weight_gradient, 0), Axis::pipeline));

    step.split.scatter_gather = false;
    CHECK(pipeline_message_bytes(step) == 4096_B);
    CHECK_FALSE(has_operations(operations(step, ActionKind::forward, 1), Axis::pipeline));

    // Cut along the sequence already, and it stays so.
    step.split.sequence_parallel = true;
    CHECK(pipeline_message_bytes(step) == 1024_B);
    step.split.scatter_gather = true;
    CHECK(pipeline_message_bytes(step) == 1024_B);
    CHECK_FALSE(has_operations(operations(step, ActionKind::forward, 1), Axis::pipeline));
}

TEST_CASE("weights are gathered while a stage waits for its message") {
    TrainingStep step = small_step();
    step.split.pipeline = step.split.tensor = step.split.data = 2;
    step.split.sharding = Sharding::weights;
    CHECK(outline(operations(step, ActionKind::backward, 0))
              .starts_with("gather1~ gather0~ gather layer1^"));
}

TEST_CASE("deferred gradients of the head follow the last backward of the last stage") {
    TrainingStep step = small_step();
    step.split.pipeline = step.split.data = 2;
    step.global_batch = 6;
    step.micro_batch = 1;
    REQUIRE(step.micro_batches() == 3);
    const auto head_gradient = [](const std::vector<Operation>& operations) {
        double seconds = 0;
        for (const Operation& one : operations) {
            const bool is_it = one.site == Site::head && one.pass == Pass::weight_gradient;
            if (is_it && one.axis == Axis::compute) seconds += one.seconds;
        }
        return seconds;
    };
    const double each = head_gradient(operations(step, ActionKind::backward, 1));
    CHECK(each > 0);
    CHECK(head_gradient(tail_operations(step, 1)) == 0);
    const Bytes reduced =
        bytes_of(operations(step, ActionKind::backward, 1, true, true), Axis::data);

    step.defer_head_gradient = true;
    CHECK(head_gradient(operations(step, ActionKind::backward, 1)) == 0);
    CHECK(head_gradient(tail_operations(step, 0)) == 0);
    CHECK(head_gradient(tail_operations(step, 1)) == doctest::Approx(3 * each).scale(0));
    // Their reduction too, and no byte is lost on the way.
    const auto table = static_cast<std::int64_t>(table_parameters_on_device(step));
    const Bytes late = bytes_of(tail_operations(step, 1), Axis::data);
    CHECK(late.value == table * step.gradient_bytes);
    CHECK(bytes_of(operations(step, ActionKind::backward, 1, true, true), Axis::data) + late ==
          reduced);
}

}  // namespace fourfold
