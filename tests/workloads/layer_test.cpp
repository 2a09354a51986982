#include "workloads/layer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/kernels.hpp"

namespace fourfold {
namespace {

Device a100_sxm() {
    Device device;
    device.peak = 312e12;
    device.memory_bandwidth = 2.039e12;
    device.memory = {80'000'000'000};
    device.multiprocessors = 108;
    device.gemm.power = 1.04517;
    return device;
}

/// GPT, unfused, with bias and dropout.
TrainingStep gpt(std::int64_t hidden, std::int64_t heads, std::int64_t micro_batch) {
    TrainingStep step;
    step.model.layers = 48;
    step.model.hidden = hidden;
    step.model.heads = step.model.kv_heads = heads;
    step.model.head_dim = hidden / heads;
    step.model.ffn = 4 * hidden;
    step.model.vocab = 51200;
    step.model.sequence = 2048;
    step.device = a100_sxm();
    step.split.tensor = 8;
    step.micro_batch = step.global_batch = micro_batch;
    return step;
}

/// The layer of Korthikanti et al. 2022, table 4.
TrainingStep korthikanti() { return gpt(6144, 64, 4); }

TrainingStep llama3_8b() {
    TrainingStep step = gpt(4096, 32, 1);
    step.model.kv_heads = 8;
    step.model.ffn = 14336;
    step.model.vocab = 128256;
    step.model.sequence = 8192;
    step.model.mlp = Mlp::swiglu;
    step.model.norm = Norm::rmsnorm;
    step.model.positions = Positions::rotary;
    step.model.attention = Attention::flash;
    step.model.tied_embeddings = step.model.bias = step.model.dropout = false;
    step.split.tensor = 1;
    return step;
}

double seconds(const std::vector<Operation>& operations) {
    double sum = 0;
    for (const Operation& operation : operations) sum += operation.seconds;
    return sum;
}

double flops_of(const std::vector<Operation>& operations) {
    double sum = 0;
    for (const Operation& operation : operations) sum += operation.flops;
    return sum;
}

double seconds(const std::vector<Operation>& operations, Pass pass) {
    double sum = 0;
    for (const Operation& operation : operations)
        sum += operation.pass == pass ? operation.seconds : 0;
    return sum;
}

const Operation& find(const std::vector<Operation>& operations, Site site, Pass pass) {
    const auto found = std::ranges::find_if(operations, [&](const Operation& operation) {
        return operation.site == site && operation.pass == pass;
    });
    REQUIRE(found != operations.end());
    return *found;
}

/// All-reduce of `bytes` over 8 A100s (scenarios/hardware/links/nvlink3.yaml); a reduce-scatter
/// and an all-gather together take as long.
double all_reduce(double bytes) {
    return 29e-6 + 4.52e-6 * 7 + 4.86e-6 * std::sqrt(bytes / 1048576) +
           2 * 7.0 / 8 * bytes / (244e9 * (1 - 0.346 / 8));
}

/// "mlp_first I": one word for the site, one letter for the pass.
std::string to_text(const std::vector<Operation>& operations) {
    constexpr std::string_view sites[] = {"embedding",
                                          "attention_norm",
                                          "attention_qkv",
                                          "attention_core",
                                          "attention_projection",
                                          "attention_residual",
                                          "mlp_norm",
                                          "mlp_first",
                                          "mlp_activation",
                                          "mlp_second",
                                          "mlp_residual",
                                          "final_norm",
                                          "head",
                                          "loss",
                                          "optimizer",
                                          "whole_stage"};
    std::string text;
    for (const Operation& operation : operations) {
        text += sites[static_cast<std::size_t>(operation.site)];
        text += ' ';
        text += "FRIWU"[static_cast<std::size_t>(operation.pass)];
        text += '\n';
    }
    return text;
}

TEST_CASE("a 22B layer takes the times of the recipe, forward and backward") {
    // What the predictor that scored the recipe gave: F 7.74, B 12.84, with sequence parallelism
    // 7.18 and 11.98, recomputed core 1.16 ms. Measured (Korthikanti et al. 2022, table
    // 4): 7.7, 11.9, 7.2, 11.8, 1.3.
    TrainingStep step = korthikanti();
    const double communication = 2 * all_reduce(4 * 2048 * 6144 * 2.0);
    const auto printed = [](double value, double expected_ms) {
        CHECK(std::abs(value * 1e3 - expected_ms) <= 0.005);
    };
    printed(seconds(layer_forward(step, 0)) + communication, 7.74);
    printed(seconds(layer_backward(step, 0)) + communication, 12.84);

    step.recompute = Recompute::selective;
    printed(seconds(layer_backward(step, 0), Pass::recompute), 1.16);
    step.recompute = Recompute::none;

    step.split.sequence_parallel = true;
    printed(seconds(layer_forward(step, 0)) + communication, 7.18);
    printed(seconds(layer_backward(step, 0)) + communication, 11.98);
}

TEST_CASE("a 22B layer takes within 8 % the times that were measured") {
    // Korthikanti et al. 2022 (arXiv 2205.05198), table 4, in ms to one decimal: t 8, micro-batch
    // 4, forward and backward, the recomputed part of the backward included.
    const struct {
        Recompute recompute;
        bool sequence_parallel;
        double forward, backward;
    } measured[] = {{Recompute::none, false, 7.7, 11.9},
                    {Recompute::none, true, 7.2, 11.8},
                    {Recompute::full, false, 7.7, 19.5},
                    {Recompute::selective, false, 7.7, 13.2},
                    {Recompute::selective, true, 7.2, 13.1}};
    const double two = 2 * all_reduce(4 * 2048 * 6144 * 2.0);
    for (const auto& row : measured) {
        CAPTURE(static_cast<int>(row.recompute));
        CAPTURE(row.sequence_parallel);
        TrainingStep step = korthikanti();
        step.recompute = row.recompute;
        step.split.sequence_parallel = row.sequence_parallel;
        const double again = row.recompute == Recompute::full ? two : 0;
        const double forward = seconds(layer_forward(step, 0)) + two;
        const double backward = seconds(layer_backward(step, 0)) + two + again;
        CHECK(forward * 1e3 == doctest::Approx(row.forward).epsilon(0.01).scale(0));
        CHECK(backward * 1e3 == doctest::Approx(row.backward).epsilon(0.08).scale(0));
        CHECK(backward * 1e3 > row.backward);  // all five are too slow, by 0.3 to 7.9 %
    }
    // The core alone is the difference of two printed times, 13.2 - 11.9 = 13.1 - 11.8 = 1.3 ms,
    // give or take 0.1 for their rounding. Ours is 11 % below: 8 % does not hold.
    TrainingStep step = korthikanti();
    step.recompute = Recompute::selective;
    const double core = seconds(layer_backward(step, 0), Pass::recompute);
    CHECK(core * 1e3 == doctest::Approx(1.3).epsilon(0.11).scale(0));
    CHECK(core * 1e3 < 1.2);
}

TEST_CASE("a stage of vTrain m061 takes the times of the recipe without its host terms") {
    // By the same predictor: h 8192, 64 heads, t 8, micro-batch 2, 12 layers a stage, 16-bit
    // gradients, full recomputation. Middle stage 70.63 and 196.59 ms, of which the host 0.04; the
    // last stage 2.69 and 4.76 ms more.
    TrainingStep step = gpt(8192, 64, 2);
    step.model.vocab = 50257;
    step.gradient_bytes = 2;
    step.recompute = Recompute::full;
    const double one = all_reduce(2 * 2048 * 8192 * 2.0);

    const double forward = 12 * (seconds(layer_forward(step, 0)) + 2 * one);
    const double backward = 12 * (seconds(layer_backward(step, 0)) + 4 * one);
    CHECK(forward * 1e3 == doctest::Approx(70.63 - 0.04).epsilon(2e-4));
    CHECK(backward * 1e3 == doctest::Approx(196.59 - 0.04).epsilon(2e-4));

    const double tiny = 3 * all_reduce(4 * 2 * 2048.0);
    CHECK((seconds(head_forward(step)) + tiny) * 1e3 == doctest::Approx(2.69).epsilon(0.01));
    CHECK((seconds(head_backward(step)) + one) * 1e3 == doctest::Approx(4.76).epsilon(0.01));
    // The first stage's 1.03 ms forward includes three more launches of 0.04 ms by the host.
    CHECK((seconds(embedding_forward(step)) + one) * 1e3 ==
          doctest::Approx(1.03 - 0.12).epsilon(0.01));
    CHECK(seconds(embedding_backward(step)) * 1e3 == doctest::Approx(0.34).epsilon(0.02));
}

TEST_CASE("operations come in issue order, input gradient before weight gradient") {
    const TrainingStep step = korthikanti();
    CHECK(to_text(layer_forward(step, 3)) ==
          "attention_norm F\n"
          "attention_qkv F\n"
          "attention_core F\n"
          "attention_projection F\n"
          "attention_residual F\n"
          "mlp_norm F\n"
          "mlp_first F\n"
          "mlp_activation F\n"
          "mlp_second F\n"
          "mlp_residual F\n");
    CHECK(to_text(layer_backward(step, 3)) ==
          "mlp_residual I\n"
          "mlp_second I\n"
          "mlp_second W\n"
          "mlp_activation I\n"
          "mlp_first I\n"
          "mlp_first W\n"
          "mlp_norm I\n"
          "attention_residual I\n"
          "attention_projection I\n"
          "attention_projection W\n"
          "attention_core I\n"
          "attention_qkv I\n"
          "attention_qkv W\n"
          "attention_norm I\n");
    CHECK(to_text(embedding_forward(step)) == "embedding F\nembedding F\n");
    CHECK(to_text(embedding_backward(step)) == "embedding W\n");
    CHECK(to_text(head_forward(step)) == "final_norm F\nhead F\nloss F\n");
    CHECK(to_text(head_backward(step)) == "loss I\nhead I\nhead W\nfinal_norm I\n");
    for (const Operation& operation : layer_backward(step, 3)) CHECK(operation.layer == 3);
}

TEST_CASE("hardware FLOPs of the unfused kernels are the model's, divided by tensor rank") {
    const TrainingStep step = korthikanti();
    const double tokens = 4 * 2048;
    const double forward = tokens / 8 *
                           (layer_forward_flops(step.model) +
                            attention_forward_flops(step.model, FlopsConvention::full));
    CHECK(flops_of(layer_forward(step, 0)) == doctest::Approx(forward).epsilon(1e-12));
    CHECK(flops_of(layer_backward(step, 0)) == doctest::Approx(2 * forward).epsilon(1e-12));
    CHECK(flops_of(head_forward(step)) ==
          doctest::Approx(tokens / 8 * head_forward_flops(step.model)).epsilon(1e-12));
}

TEST_CASE("grouped queries, a gated MLP and fused attention cost the model's FLOPs") {
    const TrainingStep step = llama3_8b();
    const double tokens = 8192;
    const double matrices = tokens * layer_forward_flops(step.model);
    const double core = tokens * attention_forward_flops(step.model, FlopsConvention::causal);
    CHECK(flops_of(layer_forward(step, 0)) == doctest::Approx(matrices + core).epsilon(1e-12));
    // Fused attention computes its scores once more: 5 products where the model counts 4.
    CHECK(flops_of(layer_backward(step, 0)) ==
          doctest::Approx(2 * matrices + 2.5 * core).epsilon(1e-12));
    // Without bias and dropout nothing of theirs is left.
    CHECK(to_text(layer_backward(step, 0)).find("residual") == std::string::npos);
    // mlp_first is one GEMM of gate and up; the activation moves 6 f bytes a token, 10 f backward.
    const auto forward = layer_forward(step, 0);
    const auto backward = layer_backward(step, 0);
    CHECK(find(forward, Site::mlp_first, Pass::forward).seconds ==
          doctest::Approx(gemm_time({.m = 8192, .n = 2 * 14336, .k = 4096}, step.device)));
    CHECK(find(forward, Site::mlp_activation, Pass::forward).seconds ==
          doctest::Approx(memory_time(6.0 * 8192 * 14336, step.device)));
    CHECK(find(backward, Site::mlp_activation, Pass::input_gradient).seconds ==
          doctest::Approx(memory_time(10.0 * 8192 * 14336, step.device)));
}

TEST_CASE("fewer key and value heads than tensor ranks are copied, not divided") {
    TrainingStep step = llama3_8b();
    step.split.tensor = 16;  // 2 query heads and a copy of one of 8 key and value heads
    CHECK(find(layer_forward(step, 0), Site::attention_qkv, Pass::forward).seconds ==
          doctest::Approx(gemm_time({.m = 8192, .n = (2 + 2) * 128, .k = 4096}, step.device)));
}

TEST_CASE("full recomputation repeats the forward in front of the backward") {
    TrainingStep step = korthikanti();
    const std::string plain = to_text(layer_backward(step, 0));
    const double before = seconds(layer_backward(step, 0));
    step.recompute = Recompute::full;
    const auto backward = layer_backward(step, 0);
    CHECK(seconds(backward) == doctest::Approx(before + seconds(layer_forward(step, 0))));
    std::string again = to_text(layer_forward(step, 0));
    for (std::size_t at = again.find(" F\n"); at != std::string::npos; at = again.find(" F\n")) {
        again[at + 1] = 'R';
    }
    CHECK(to_text(backward) == again + plain);
}

TEST_CASE("selective recomputation repeats the attention core, which fused attention has inside") {
    TrainingStep step = korthikanti();
    step.recompute = Recompute::selective;
    const auto backward = layer_backward(step, 0);
    CHECK(to_text(backward).starts_with("attention_core R\nmlp_residual I\n"));
    CHECK(backward.front().seconds ==
          find(layer_forward(step, 0), Site::attention_core, Pass::forward).seconds);

    step.model.attention = Attention::flash;
    CHECK(seconds(layer_backward(step, 0), Pass::recompute) == 0);
}

TEST_CASE("softmax is fused only for a multiple of 4 matrices and at most 2,048 positions") {
    const auto core = [](std::int64_t micro_batch, std::int64_t sequence) {
        TrainingStep step = gpt(2048, 16, micro_batch);  // 2 heads a device
        step.model.sequence = sequence;
        return find(layer_forward(step, 0), Site::attention_core, Pass::forward).seconds;
    };
    const Device device = a100_sxm();
    const double scores = 2.0 * 2048 * 2048;
    const double others = gemm_time({.m = 2048, .n = 2048, .k = 128, .batch = 2}, device) +
                          gemm_time({.m = 2048, .n = 128, .k = 2048, .batch = 2}, device) +
                          memory_time(0, device) + memory_time(5 * scores, device) +
                          memory_time(4.0 * 2048 * 256, device);
    CHECK(core(1, 2048) == doctest::Approx(others + memory_time(22 * scores, device, 7)));
    CHECK(core(2, 2048) < core(1, 2048) * 1.5);  // twice the work, but fused
    CHECK(core(2, 2056) > core(2, 2048) * 1.2);  // hardly more work, but not fused
}

TEST_CASE("a linear layer multiplies tn, nn for its input's gradient, nt for its weights'") {
    // The second matrix of the MLP, 14336 -> 4096 on 8192 tokens, measured in each pass to take 1.5
    // times the formula. In another layout than these they would count for nothing.
    TrainingStep step = llama3_8b();
    step.framework.accumulate_bytes = 0;
    const Device plain = step.device;
    const Gemm forward{.m = 8192, .n = 4096, .k = 14'336, .batch = 1, .layout = GemmLayout::tn};
    const Gemm input{.m = 8192, .n = 14'336, .k = 4096, .batch = 1, .layout = GemmLayout::nn};
    const Gemm weight{.m = 4096, .n = 14'336, .k = 8192, .batch = 1, .layout = GemmLayout::nt};
    std::vector<GemmSample> samples;
    for (const Gemm& gemm : {forward, input, weight}) {
        samples.push_back({gemm, 1.5 * gemm_time(gemm, plain)});
    }
    step.device.gemm_residuals = gemm_residuals(samples, plain);
    const auto time = [](const std::vector<Operation>& operations, Pass pass) {
        return find(operations, Site::mlp_second, pass).seconds;
    };
    CHECK(time(layer_forward(step, 0), Pass::forward) ==
          doctest::Approx(samples[0].time_s).scale(0).epsilon(1e-9));
    CHECK(time(layer_backward(step, 0), Pass::input_gradient) ==
          doctest::Approx(samples[1].time_s).scale(0).epsilon(1e-9));
    CHECK(time(layer_backward(step, 0), Pass::weight_gradient) ==
          doctest::Approx(samples[2].time_s).scale(0).epsilon(1e-9));
}

TEST_CASE("sequence parallelism divides what is between the matrices and leaves those alone") {
    TrainingStep step = korthikanti();
    const auto whole = layer_forward(step, 0);
    step.split.sequence_parallel = true;
    const auto divided = layer_forward(step, 0);
    const double n = 4 * 2048;
    for (const Site site : {Site::attention_norm, Site::mlp_norm}) {
        CHECK(find(divided, site, Pass::forward).seconds ==
              doctest::Approx(memory_time(4 * n * 6144 / 8, step.device)));
    }
    CHECK(find(divided, Site::mlp_residual, Pass::forward).seconds ==
          doctest::Approx(memory_time(7 * n * 6144 / 8, step.device)));
    for (const Site site : {Site::attention_qkv, Site::attention_core, Site::attention_projection,
                            Site::mlp_first, Site::mlp_activation, Site::mlp_second}) {
        CHECK(find(divided, site, Pass::forward).seconds ==
              find(whole, site, Pass::forward).seconds);
    }
}

TEST_CASE("gradients of 2 bytes are accumulated by a kernel of their own, 6 bytes a parameter") {
    TrainingStep step = korthikanti();
    const auto fused = layer_backward(step, 0);
    step.gradient_bytes = 2;
    const auto separate = layer_backward(step, 0);
    const double parameters = 6144.0 * 24576 / 8;
    CHECK(find(separate, Site::mlp_first, Pass::weight_gradient).seconds -
              find(fused, Site::mlp_first, Pass::weight_gradient).seconds ==
          doctest::Approx(4 * parameters / (0.85 * 2.039e12)));
    CHECK(seconds(separate, Pass::input_gradient) == seconds(fused, Pass::input_gradient));
}

TEST_CASE("a divided vocabulary is padded to 128 t, a whole one to 128") {
    TrainingStep step = gpt(8192, 64, 2);
    step.model.vocab = 50257;
    const double flops_per_column = 2.0 * 2 * 2048 * 8192;
    CHECK(flops_of(head_forward(step)) == flops_per_column * 51200 / 8);
    step.split.vocabulary_parallel = false;
    CHECK(flops_of(head_forward(step)) == flops_per_column * 50304);
}

TEST_CASE("the optimizer moves 48 bytes for each parameter that it owns") {
    const TrainingStep step = korthikanti();
    const auto update = optimizer_update(step, 1e9);
    CHECK(to_text(update) == "optimizer U\n");
    CHECK(seconds(update) == doctest::Approx(48e9 / (0.85 * 2.039e12) + 2e-6));
}

TEST_CASE("measured times replace the kernels and keep the places of the collectives") {
    TrainingStep step = korthikanti();
    const double forward_flops = flops_of(layer_forward(step, 0));
    const double backward_flops = flops_of(layer_backward(step, 0));
    step.measured.layer = MeasuredTimes{8_ms, 4_ms, 2_ms};
    step.measured.embedding = MeasuredTimes{3_ms, 2_ms, 1_ms};
    step.measured.head = MeasuredTimes{6_ms, 5_ms, 4_ms};
    step.measured.optimizer = 7_ms;

    CHECK(to_text(layer_forward(step, 0)) ==
          "attention_qkv F\nattention_projection F\nmlp_first F\nmlp_second F\n");
    CHECK(to_text(layer_backward(step, 0)) ==
          "mlp_second I\nmlp_second W\nmlp_first I\nmlp_first W\n"
          "attention_projection I\nattention_projection W\nattention_qkv I\nattention_qkv W\n");
    CHECK(seconds(layer_forward(step, 0)) == doctest::Approx(8e-3));
    CHECK(seconds(layer_backward(step, 0), Pass::input_gradient) == doctest::Approx(4e-3));
    CHECK(seconds(layer_backward(step, 0), Pass::weight_gradient) == doctest::Approx(2e-3));
    CHECK(flops_of(layer_forward(step, 0)) == doctest::Approx(forward_flops));
    CHECK(flops_of(layer_backward(step, 0)) == doctest::Approx(backward_flops));
    step.recompute = Recompute::full;
    CHECK(seconds(layer_backward(step, 0), Pass::recompute) == doctest::Approx(8e-3));

    CHECK(to_text(embedding_forward(step)) == "embedding F\n");
    CHECK(to_text(embedding_backward(step)) == "embedding W\n");
    CHECK(seconds(embedding_forward(step)) == doctest::Approx(3e-3));
    CHECK(seconds(embedding_backward(step)) == doctest::Approx(3e-3));
    CHECK(to_text(head_forward(step)) == "head F\nloss F\n");
    CHECK(to_text(head_backward(step)) == "loss I\nhead I\nhead W\n");
    CHECK(seconds(head_forward(step)) == doctest::Approx(6e-3));
    CHECK(seconds(head_backward(step)) == doctest::Approx(9e-3));
    CHECK(seconds(optimizer_update(step, 1e9)) == doctest::Approx(7e-3));
}

}  // namespace
TEST_CASE("a framework's normalization kernels have a speed of their own") {
    TrainingStep step = gpt(1024, 16, 8);
    // 16,384 rows of 1,024, as apex measured (pull request 1037)
    step.device.memory_bandwidth = 1.555e12;
    step.device.memory_launch_s = 0;
    step.framework.norm_forward = 0.68;
    step.framework.norm_backward = 0.43;
    const double bytes = 16384.0 * 1024 * 2;
    const auto seconds_of_norm = [](const std::vector<Operation>& operations) {
        const auto found = std::ranges::find(operations, Site::mlp_norm, &Operation::site);
        REQUIRE(found != operations.end());
        return found->seconds;
    };
    CHECK(2 * bytes / seconds_of_norm(layer_forward(step, 0)) ==
          doctest::Approx(896e9).epsilon(0.01).scale(0));
    // With the gradient of the residual, 6 bytes at the speed of other kernels.
    const double residual = 3 * bytes / (0.85 * 1.555e12);
    CHECK(3 * bytes / (seconds_of_norm(layer_backward(step, 0)) - residual) ==
          doctest::Approx(572e9).epsilon(0.01).scale(0));
}

}  // namespace fourfold
