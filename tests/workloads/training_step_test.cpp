#include "workloads/training_step.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "tests/support/training.hpp"

namespace fourfold {
namespace {

// 8 layers of 256, 8 heads, a sequence of 128; tensor 2, pipeline 2, data 2; 4 micro-batches of 1.
TrainingStep sound_step() {
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    step.split.tensor = step.split.pipeline = step.split.data = 2;
    set_micro_batches(step, 4);
    return step;
}

// "where: what" of what `check` says to a step that was sound before `spoil`.
std::string refusal(const std::function<void(TrainingStep&)>& spoil) {
    TrainingStep step = sound_step();
    REQUIRE(check(step, 8).has_value());
    spoil(step);
    const auto result = check(step, 8);
    return result ? "" : result.error().where + ": " + result.error().what;
}

}  // namespace

TEST_CASE("a vocabulary is padded to 128 for every tensor rank that has a part of it") {
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    CHECK(padded_vocabulary(step) == 1024);   // 8 * 128
    step.model.vocab = 50257;                 // GPT-2's
    CHECK(padded_vocabulary(step) == 50304);  // 393 * 128
    step.split.tensor = 8;
    CHECK(padded_vocabulary(step) == 51200);  // 50 * 1024
    step.split.vocabulary_parallel = false;
    CHECK(padded_vocabulary(step) == 50304);
    step.model.vocab = 50304;
    CHECK(padded_vocabulary(step) == 50304);
}

TEST_CASE("micro-batches and stages are counted per data rank and per chunk") {
    TrainingStep step = sound_step();
    step.global_batch = 24;
    step.micro_batch = 3;
    step.chunks = 2;
    CHECK(step.micro_batches() == 4);  // 24 / (3 * 2)
    CHECK(step.stages() == 4);
}

TEST_CASE("a split that the model or the cluster cannot take is refused") {
    CHECK(refusal([](auto& step) { step.split.tensor = 0; }) ==
          "parallel.tensor: a degree of 0 is outside 1 .. 1048576");
    CHECK(refusal([](auto& step) { step.split.pipeline = -1; }) ==
          "parallel.pipeline: a degree of -1 is outside 1 .. 1048576");
    CHECK(refusal([](auto& step) { step.split.data = 1 << 21; }) ==
          "parallel.data: a degree of 2097152 is outside 1 .. 1048576");
    CHECK(refusal([](auto& step) { step.split.data = 4; }) ==
          "parallel: tensor 2 x pipeline 2 x data 4 = 16 ranks, but the cluster has 8 devices");
    CHECK(refusal([](auto& step) {
              step.split.tensor = 3;
              step.split.pipeline = 1;
          }) == "parallel.tensor: 8 attention heads cannot be divided among 3 tensor ranks");
    CHECK(refusal([](auto& step) { step.model.ffn = 1023; }) ==
          "parallel.tensor: 1023 FFN columns cannot be divided among 2 tensor ranks");
    CHECK(refusal([](auto& step) {
              step.model.heads = 12;
              step.model.head_dim = 32;
              step.model.kv_heads = 3;
          }) == "parallel.tensor: 3 key-value heads and 2 tensor ranks: one must divide the other");
    CHECK(refusal([](auto& step) {
              step.split.sequence_parallel = true;
              step.model.sequence = 127;
          }) ==
          "parallel.sequence_parallel: a sequence of 127 cannot be divided among 2 tensor ranks");
    CHECK(refusal([](auto& step) { step.model.sequence = 127; }).empty());
}

TEST_CASE("layers that do not divide among the stages are refused") {
    // Megatron-LM #1304: 30 layers over 4 ranks silently became 28.
    CHECK(refusal([](auto& step) {
              step.model.layers = 30;
              step.split.pipeline = 4;
              step.split.tensor = 1;
          }) ==
          "parallel.pipeline: 30 layers cannot be divided among 4 stages (4 pipeline ranks x 1 "
          "chunks)");
    CHECK(
        refusal([](auto& step) {
            step.schedule = schedule_named("interleaved_1f1b");
            step.chunks = 3;
        }) ==
        "schedule.chunks: 8 layers cannot be divided among 6 stages (2 pipeline ranks x 3 chunks)");
    CHECK(refusal([](auto& step) { step.chunks = 0; }) ==
          "schedule.chunks: 0 chunks on each of 2 pipeline ranks: the stages must be 1 .. 32768");
}

TEST_CASE("a schedule that cannot run is refused with its reason") {
    CHECK(refusal([](auto& step) { step.chunks = 2; }) ==
          "schedule.kind: 1f1b runs 1 chunk on each rank, not 2; interleaved_1f1b and zb1p run "
          "several");
    CHECK(refusal([](auto& step) {
              step.schedule = schedule_named("interleaved_1f1b");
              step.chunks = 2;
              set_micro_batches(step, 3);
          }) ==
          "schedule.kind: interleaved_1f1b takes micro-batches in groups of 2, one for each rank, "
          "and 3 micro-batches leave a last group of 1, in which ranks can wait for each other "
          "for ever; use a multiple of 2 micro-batches");
}

TEST_CASE("a batch that does not divide into micro-batches is refused with the nearest that does") {
    CHECK(refusal([](auto& step) { step.micro_batch = 0; }) ==
          "batch.micro: a micro-batch of 0 sequences");
    CHECK(refusal([](auto& step) { step.global_batch = 0; }) ==
          "batch.global: a global batch of 0 sequences");
    CHECK(
        refusal([](auto& step) { step.global_batch = 7; }) ==
        "batch.global: 7 sequences cannot be divided into micro-batches of 1 on 2 data ranks; the "
        "nearest that can: 6");
    CHECK(
        refusal([](auto& step) { step.global_batch = 1; }) ==
        "batch.global: 1 sequences cannot be divided into micro-batches of 1 on 2 data ranks; the "
        "nearest that can: 2");
    CHECK(refusal([](auto& step) { step.global_batch = std::int64_t{1} << 32; }) ==
          "batch: more than 2147483648 sequences");
    // 10 M micro-batches * 8 layers * (2 tensor * 2 data) * 14 = 4.48e9 tasks.
}

TEST_CASE("buckets that are nothing or too many are refused") {
    CHECK(refusal([](auto& step) { step.bucket = 0_B; }) == "parallel.bucket: a bucket of 0 B");
    CHECK(refusal([](auto& step) { step.bucket = {-5}; }) == "parallel.bucket: a bucket of -5 B");
    // The first stage has 4 layers of (12 * 256^2 + 7 * 256) / 2 + 6 * 256 = 395,648 parameters,
    // 1024 / 2 rows of 256 and 128 positions: 1,746,432, of 4 bytes: 436,608 buckets of 16.
    CHECK(refusal([](auto& step) { step.bucket = 16_B; }) ==
          "parallel.bucket: the gradients of a stage make 4.4e+05 buckets of 16 B, more than the "
          "1e+05 "
          "that can be simulated; use larger buckets");
    // Nobody fills buckets here.
    CHECK(refusal([](auto& step) {
              step.bucket = 16_B;
              step.split.sharding = Sharding::weights;
          }).empty());
}

TEST_CASE("a slow device must exist and be slow by a number") {
    CHECK(refusal([](auto& step) {
              step.slow_devices = {{1, 2.0}, {8, 2.0}};
          }) == "perturb.1.slow_device: there is no device 8; the cluster has 8, counted from 0");
    CHECK(refusal([](auto& step) {
              step.slow_devices = {{1, 0.0}};
          }) == "perturb.0.factor: a factor of 0; 1.3 makes a device take 1.3 times as long");
}

TEST_CASE("a model that cannot be is refused under the model's key") {
    CHECK(refusal([](auto& step) { step.model.layers = 0; }) ==
          "model.layers: must be positive, not 0");
}

}  // namespace fourfold
