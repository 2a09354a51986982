#include "results/measure.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "tests/support/training.hpp"

namespace fourfold {
namespace {

Duration in(const TimePartition& partition, TimeClass time_class) {
    return partition[static_cast<std::size_t>(time_class)];
}

Duration sum(const TimePartition& partition) {
    Duration all{};
    for (const Duration part : partition) all += part;
    return all;
}

std::vector<TimePartition> partition(const Run& run) {
    return partition_time(run.lowered, run.timeline);
}

constexpr MeasuredTimes ten_and_twenty{
    .forward = 10_us, .input_gradient = 12_us, .weight_gradient = 8_us};

/// Activations of 16 bytes: a hop at 1 GB/s takes 16 ns and its latency.
TrainingStep pipeline_step(std::int64_t ranks, std::int64_t micro_batches) {
    TrainingStep step = step_of(gpt(ranks, 8, 1, 128, 1));
    step.split.pipeline = ranks;
    step.model.tied_embeddings = false;
    set_stage_times(step, ten_and_twenty);
    set_micro_batches(step, micro_batches);
    return step;
}

/// Two data ranks of measured time, an all-reduce of 7,776 B over 1 GB/s and 2 us:
/// 2 (3,888 ns + 2 us) = 11,776 ns.
TrainingStep data_step() {
    TrainingStep step = step_of(gpt(1, 8, 1, 128, 4));
    step.split.data = 2;
    step.algorithm = *find_algorithm("ring");
    set_stage_times(step, ten_and_twenty);
    set_micro_batches(step, 2);
    return step;
}

Graph pair_of_devices() {
    ClusterShape shape;
    shape.devices_per_node = 2;
    shape.node = fabric_of("switch", {1_GBps, 1_us, 1.0});
    return seal_cluster(shape);
}

}  // namespace

TEST_CASE("the time of 1F1B is warm-up, drain and steady waits, by stage") {
    // reference/diagnosis.md, s10: p 4, F 10, B 20, hops free. m 4: 7 * 30 = 210 = 120 + 90; stage
    // s warms up for 10 s, drains for 20 s, and waits 30 (3 - s) for gradients. m 16: 570 = 480
    // + 90.
    const Graph graph = ring(4, {1_GBps, Duration::zero(), 1.0});
    for (const std::uint32_t micro_batches : {4U, 16U}) {
        const auto lowered = lower_pipeline(*schedule_named("1f1b"), {4, 1, micro_batches},
                                            {10_us, 12_us, 8_us, 0_us}, graph);
        REQUIRE(lowered.has_value());
        const Timeline timeline = run_audited(graph, lowered->program, LinkModel::flows);
        CHECK(timeline.finish.time_since_epoch() == 30_us * micro_batches + 90_us);
        const auto parts = partition_time(*lowered, timeline);
        for (std::int64_t stage = 0; stage < 4; ++stage) {
            const TimePartition& mine = parts[static_cast<std::size_t>(stage)];
            CHECK(in(mine, TimeClass::compute) == 30_us * micro_batches);
            CHECK(in(mine, TimeClass::warmup) == 10_us * stage);
            CHECK(in(mine, TimeClass::drain) == 20_us * stage);
            CHECK(in(mine, TimeClass::wait_downstream) == 30_us * (3 - stage));
            CHECK(in(mine, TimeClass::wait_upstream) == Duration::zero());
            CHECK(in(mine, TimeClass::transfer) == Duration::zero());
            CHECK(sum(mine) == timeline.finish.time_since_epoch());
        }
    }
}

TEST_CASE("the bubble of 1F1B is (p - 1) of m + p - 1 rounds when hops are next to free") {
    // 16 bytes at 10^18 B/s: a picosecond a hop.
    for (const std::int64_t ranks : {2, 4, 8}) {
        for (const std::int64_t micro_batches : {1, 4, 8, 32}) {
            const TrainingStep step = pipeline_step(ranks, micro_batches);
            const Graph graph = ring(static_cast<std::uint32_t>(ranks),
                                     {{1'000'000'000'000'000'000}, Duration::zero(), 1.0});
            const Run run = run_step(step, graph);
            const Measures found = measure(step, run.lowered, run.timeline);
            const double expected =
                static_cast<double>(ranks - 1) / static_cast<double>(micro_batches + ranks - 1);
            CHECK(found.bubble_fraction == doctest::Approx(expected).epsilon(1e-6));
            CHECK(found.idle_fraction == doctest::Approx(expected).epsilon(1e-6));
        }
    }
}

TEST_CASE("a hop is transfer, what comes before it is waiting for the neighbour") {
    // Two stages, 1 micro-batch, hops of 1 us, of which 16 ns are bytes. Stage 1: warm-up 10, hop
    // 1, works to 41, its gradient's bytes leave until 41.016, drain to 62. Stage 0: forward to 10,
    // gradient sent at 41 and here at 42, backward to 62.
    const Run run = run_step(pipeline_step(2, 1), ring(2, {1_GBps, 984_ns, 1.0}));
    CHECK(run.time() == 62_us);
    const auto parts = partition(run);
    CHECK(in(parts[0], TimeClass::compute) == 30_us);
    CHECK(in(parts[0], TimeClass::wait_downstream) == 31_us);
    CHECK(in(parts[0], TimeClass::transfer) == 1_us);
    CHECK(in(parts[1], TimeClass::warmup) == 10_us);
    CHECK(in(parts[1], TimeClass::transfer) == 1_us + 16_ns);
    CHECK(in(parts[1], TimeClass::drain) == 21_us - 16_ns);
}

TEST_CASE("a stage that the one before holds up waits upstream") {
    // Stage 0 takes twice as long (20 and 40), hops of 16 ns: its forwards 0 and 1 end at 20
    // and 40. Stage 1 has forward 0 at 20 to 30 and backward to 50: forward 1 is there. GPipe:
    // forward 0 to 30, then it waits for forward 1 until 40.
    TrainingStep step = pipeline_step(2, 2);
    step.schedule = schedule_named("gpipe");
    step.slow_devices = {{.device = 0, .factor = 2}};
    const Run run = run_step(step, ring(2, {1_GBps, Duration::zero(), 1.0}));
    const auto parts = partition(run);
    CHECK(in(parts[1], TimeClass::warmup) == 20_us);
    CHECK(in(parts[1], TimeClass::wait_upstream) == 10_us - 16_ns);
    CHECK(in(parts[1], TimeClass::wait_downstream) == Duration::zero());
}

TEST_CASE("waiting for the norm at the step's end is drain, not a slow peer") {
    // Stage 3 is done 60 us before stage 0; the all-reduce of 4 bytes that ends the step starts
    // when stage 0 is done.
    TrainingStep step = pipeline_step(4, 4);
    step.gradient_norm = true;
    const Run run = run_step(step, ring(4, {1_GBps, Duration::zero(), 1.0}));
    const auto parts = partition(run);
    for (std::int64_t stage = 0; stage < 4; ++stage) {
        const TimePartition& mine = parts[static_cast<std::size_t>(stage)];
        CHECK(in(mine, TimeClass::wait_peer) == Duration::zero());
        CHECK(in(mine, TimeClass::drain) >= 20_us * stage - 1_us);
        CHECK(in(mine, TimeClass::drain) <= 20_us * stage + 1_us);
    }
}

TEST_CASE("those that are early at a collective wait for the peer that is late") {
    // Rank 1 takes 90 us for what rank 0 does in 60.
    TrainingStep step = data_step();
    step.slow_devices = {{.device = 1, .factor = 1.5}};
    for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
        const auto parts = partition(run_step(step, pair_of_devices(), links));
        CHECK(in(parts[0], TimeClass::compute) == 60_us);
        CHECK(in(parts[0], TimeClass::wait_peer) == 30_us);
        // Message by message rank 1 finds the first message there, and rank 0 is done after two
        // messages and one latency, 2 us before rank 1.
        const Duration early = links == LinkModel::messages ? 2_us : 0_us;
        CHECK(in(parts[0], TimeClass::transfer) == 11'776_ns - early);
        CHECK(in(parts[0], TimeClass::drain) == early);
        CHECK(in(parts[1], TimeClass::compute) == 90_us);
        CHECK(in(parts[1], TimeClass::wait_peer) == Duration::zero());
        CHECK(in(parts[1], TimeClass::transfer) == 11'776_ns);
    }
}

TEST_CASE("a blocking send counts as transfer") {
    // 10 KB at 1 GB/s: 10 us for each of the 2 activations that stage 0 sends, GPipe. The second
    // is on its way while the first backward is awaited.
    TrainingStep step = pipeline_step(2, 2);
    step.model.sequence = 625;
    step.schedule = schedule_named("gpipe");
    step.point_to_point = PointToPoint::blocking;
    const Run run = run_step(step, ring(2, {1_GBps, Duration::zero(), 1.0}));
    const TimePartition mine = partition(run)[0];
    CHECK(in(mine, TimeClass::transfer) >= 10_us);
    CHECK(sum(mine) == run.time());
}

TEST_CASE("every device's time sums to the step, to the picosecond, in both link models") {
    for (const Sharding sharding :
         {Sharding::none, Sharding::optimizer, Sharding::gradients, Sharding::weights}) {
        for (const std::string_view schedule : {"1f1b", "zb1p"}) {
            TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
            step.split.tensor = step.split.pipeline = 2;
            step.split.data = 4;
            step.split.sharding = sharding;
            step.split.sequence_parallel = sharding != Sharding::gradients;
            step.schedule = schedule_named(schedule);
            step.slow_devices = {{.device = 5, .factor = 1.3}};
            set_micro_batches(step, 4);
            const Graph graph = cluster(2, 8);
            for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
                const Run run = run_step(step, graph, links);
                const auto parts = partition(run);
                for (const DeviceId device : ids<DeviceId>(16)) {
                    CHECK(sum(parts[device.value]) == run.time());
                    CHECK(in(parts[device.value], TimeClass::compute) ==
                          compute_time(run.lowered.program, run.timeline, device));
                }
                const Measures found = measure(step, run.lowered, run.timeline);
                double fractions = 0;
                for (const double fraction : found.time) {
                    CHECK(fraction >= 0);
                    fractions += fraction;
                }
                CHECK(std::abs(fractions - 1) < 1e-9);
                CHECK(found.idle_fraction == doctest::Approx(1 - found.time[0]));
                CHECK(found.devices == 16);
            }
        }
    }
}

TEST_CASE("time classes have the names of reports") {
    CHECK(name_of(TimeClass::compute) == "compute");
    CHECK(name_of(TimeClass::transfer) == "comm.transfer");
    CHECK(name_of(TimeClass::wait_peer) == "wait.peer");
    CHECK(name_of(TimeClass::wait_upstream) == "wait.upstream");
    CHECK(name_of(TimeClass::wait_downstream) == "wait.downstream");
    CHECK(name_of(TimeClass::warmup) == "warmup");
    CHECK(name_of(TimeClass::drain) == "drain");
}

TEST_CASE("MFU counts the causal half for fused attention and says so") {
    // Megatron-LM #831. Llama 3 8B at a sequence of 8,192: 57,912,852,480 FLOPs a token in full,
    // 51,470,401,536 causal. A step of 3 * 30 ms with 1 sequence each on one device.
    TrainingStep step = step_of(llama3_8b());
    set_stage_times(step, {.forward = 10_ms, .input_gradient = 10_ms, .weight_gradient = 10_ms});
    set_micro_batches(step, 3);
    const Graph graph = cluster(1, 1);
    const auto found = [&] {
        const Run run = run_step(step, graph);
        return measure(step, run.lowered, run.timeline);
    };
    const Measures fused = found();
    CHECK(fused.step_time == 90_ms);
    CHECK(fused.convention == FlopsConvention::causal);
    CHECK(fused.model_flops == 3 * 8192 * 51'470'401'536.0);
    CHECK(fused.tokens_per_second == doctest::Approx(3 * 8192 / 0.09));
    CHECK(fused.flops_per_device == doctest::Approx(3 * 8192 * 51'470'401'536.0 / 0.09));
    CHECK(fused.mfu == doctest::Approx(3 * 8192 * 51'470'401'536.0 / 0.09 / 312e12));

    step.model.attention = Attention::unfused;
    const Measures unfused = found();
    CHECK(unfused.convention == FlopsConvention::full);
    CHECK(unfused.model_flops == 3 * 8192 * 57'912'852'480.0);
}

TEST_CASE("HFU counts recomputation, of measured stages too") {
    // Korthikanti et al. 2022: full recomputation 96 B s L h^2 (1 + s / 6h + V / 16 L h) against
    // 72 B s L h^2 (1 + s / 6h + V / 12 L h). L 8, h 256, s 128, V 1024.
    const double s_over_6h = 128.0 / (6 * 256), v_over_lh = 1024.0 / (8 * 256);
    const double ratio =
        96 * (1 + s_over_6h + v_over_lh / 16) / (72 * (1 + s_over_6h + v_over_lh / 12));
    for (const bool measured : {false, true}) {
        TrainingStep step = step_of(gpt(8, 256, 8, 1024, 128));
        set_micro_batches(step, 2);
        if (measured) set_stage_times(step, ten_and_twenty);
        const Graph graph = cluster(1, 1);
        const Run once = run_step(step, graph);
        const Measures plain = measure(step, once.lowered, once.timeline);
        CHECK(plain.hfu == doctest::Approx(plain.mfu).epsilon(1e-12));
        step.recompute = Recompute::full;
        const Run again = run_step(step, graph);
        const Measures full = measure(step, again.lowered, again.timeline);
        CHECK(full.hfu == doctest::Approx(full.mfu * ratio).epsilon(1e-12));
        CHECK(full.model_flops == plain.model_flops);
    }
}

}  // namespace fourfold
