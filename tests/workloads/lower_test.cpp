#include "workloads/lower.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/training.hpp"
#include "workloads/stage.hpp"

namespace fourfold {
namespace {

using enum SplitAxis;

constexpr std::array<std::array<SplitAxis, 3>, 6> all_orders{{{tensor, data, pipeline},
                                                              {tensor, pipeline, data},
                                                              {data, tensor, pipeline},
                                                              {data, pipeline, tensor},
                                                              {pipeline, tensor, data},
                                                              {pipeline, data, tensor}}};
constexpr std::array both_models{LinkModel::flows, LinkModel::messages};

/// "3" or "3,4,5": of each rank.
std::vector<std::int64_t> per_rank(const std::string& text, std::uint32_t ranks) {
    std::vector<std::int64_t> all;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) all.push_back(std::stoll(word));
    if (all.size() == 1) all.resize(ranks, all.front());
    REQUIRE(all.size() == ranks);
    return all;
}

/// Forward 10 us, backward 20 us of a whole stage, and nothing else that takes time.
constexpr MeasuredTimes ten_and_twenty{
    .forward = 10_us, .input_gradient = 12_us, .weight_gradient = 8_us};

/// A model whose activations have 16 bytes, so that a hop at 1 GB/s takes 16 ns and its latency.
TrainingStep pipeline_step(std::int64_t ranks, std::int64_t micro_batches) {
    TrainingStep step = step_of(gpt(2 * ranks, 8, 1, 128, 1));
    step.split.pipeline = ranks;
    step.model.tied_embeddings = false;
    set_stage_times(step, ten_and_twenty);
    set_micro_batches(step, micro_batches);
    return step;
}

Graph hops_of(std::uint32_t ranks, Duration hop) { return ring(ranks, {1_GBps, hop - 16_ns, 1.0}); }

std::size_t count(const Run& run, Axis axis, DeviceId device) {
    std::size_t found = 0;
    for (const TaskId task : run.lowered.labels.keys()) {
        found += run.lowered.labels[task].axis == axis &&
                         run.lowered.program.device(task) == device &&
                         run.lowered.program.kind(task) != TaskKind::receive
                     ? 1
                     : 0;
    }
    return found;
}

}  // namespace

TEST_CASE("the event engine gives the golden schedules to the last unit") {
    std::ifstream file(FOURFOLD_SOURCE_DIR "/tests/golden/schedules.txt");
    REQUIRE(file.is_open());
    int cases = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#') continue;
        CAPTURE(line);
        std::istringstream fields(line);
        std::string name, word, busy, first, peak;
        PipelineShape shape;
        fields >> name >> shape.ranks >> shape.chunks >> shape.micro_batches >> word;
        const Schedule& schedule = *schedule_named(name);
        if (word == "refused") {
            CHECK(schedule.refuse(shape).has_value());
            continue;
        }
        std::int64_t input = 0, weight = 0, hop = 0, makespan = 0;
        fields >> input >> weight >> hop >> makespan >> busy >> first >> peak;
        REQUIRE(!fields.fail());
        // One unit is a picosecond; ranks are neighbours in a ring, a link of `hop` apart.
        const Graph graph = ring(shape.ranks, {1_GBps, Duration(hop), 1.0});
        const ChunkTimes times{.forward = Duration(std::stoll(word)),
                               .input_gradient = Duration(input),
                               .weight_gradient = Duration(weight),
                               .hop = Duration(hop)};
        const Result<Lowered> lowered = lower_pipeline(schedule, shape, times, graph);
        REQUIRE(lowered.has_value());
        const Program& program = lowered->program;
        const Timeline timeline = run_audited(graph, program, LinkModel::flows);
        check_bounds(graph, program, timeline);

        std::vector<Duration> work(shape.ranks);
        std::vector<Time> begins(shape.ranks, Time::max());
        Time finish{};
        for (const TaskId task : timeline.begin.keys()) {
            if (program.kind(task) != TaskKind::compute) continue;
            const std::uint32_t rank = program.device(task).value;
            work[rank] += timeline.end[task] - timeline.begin[task];
            begins[rank] = std::min(begins[rank], timeline.begin[task]);
            finish = std::max(finish, timeline.end[task]);
        }
        CHECK(ps(finish) == makespan);
        CHECK(timeline.finish == finish);
        const auto expect_busy = per_rank(busy, shape.ranks);
        const auto expect_first = per_rank(first, shape.ranks);
        const auto expect_peak = per_rank(peak, shape.ranks);
        for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
            CHECK(work[rank].count() == expect_busy[rank]);
            CHECK(ps(begins[rank]) == expect_first[rank]);
            CHECK(peak_in_flight(schedule.actions(shape, rank)) == expect_peak[rank]);
        }
        ++cases;
    }
    CHECK(cases == 1920);
}

TEST_CASE("message by message a bare pipeline takes as long") {
    // Messages of zero bytes do not meet on links. Interleaved 1F1B, p 4, m 8, v 2, all units 1:
    // (m v + p - 1) 3 = 57; zb1p, p 4, m 8: (m + p - 1) 2 + m + ... = 27.
    const struct {
        std::string_view schedule;
        std::uint32_t chunks;
        std::int64_t makespan;
    } cases[] = {{"interleaved_1f1b", 2, 57}, {"zb1p", 1, 27}, {"1f1b", 1, 33}, {"gpipe", 1, 33}};
    const Graph graph = ring(4, {1_GBps, Duration::zero(), 1.0});
    for (const auto& [schedule, chunks, makespan] : cases) {
        for (const LinkModel links : both_models) {
            const auto lowered = lower_pipeline(*schedule_named(schedule), {4, chunks, 8},
                                                {1_ps, 1_ps, 1_ps, 0_ps}, graph);
            REQUIRE(lowered.has_value());
            const Timeline timeline = run_audited(graph, lowered->program, links);
            CHECK(ps(timeline.finish) == makespan);
        }
    }
}

TEST_CASE("a pipeline of measured stages takes the closed form of 1F1B, hops included") {
    // (m + p - 1)(F + B) + 2 c floor((p - 1)(m + p - 1) / p), F = 10 us, B = 20 us, c = 1 us.
    const struct {
        std::int64_t ranks, micro_batches, micros;
    } cases[] = {{4, 8, 11 * 30 + 2 * 8},                             // floor(3 * 11 / 4) = 8
                 {4, 3, 6 * 30 + 2 * 4},                              // floor(3 * 6 / 4) = 4
                 {4, 1, 4 * 30 + 2 * 3},                              // there and back
                 {2, 5, 6 * 30 + 2 * 3},  {8, 16, 23 * 30 + 2 * 20},  // floor(7 * 23 / 8) = 20
                 {1, 4, 4 * 30}};
    for (const auto& [ranks, micro_batches, micros] : cases) {
        const Graph graph = hops_of(static_cast<std::uint32_t>(ranks), 1_us);
        for (const LinkModel links : both_models) {
            CHECK(run_step(pipeline_step(ranks, micro_batches), graph, links).time() ==
                  micros * 1_us);
        }
    }
}

TEST_CASE("GPipe pays a hop only while it fills and drains") {
    TrainingStep step = pipeline_step(4, 8);
    step.schedule = schedule_named("gpipe");
    CHECK(run_step(step, hops_of(4, 1_us)).time() == 11 * 30_us + 6_us);
}

TEST_CASE("an interleaved pipeline divides the bubble by its chunks") {
    // 2 chunks of 5 and 10 us: (m v + p - 1)(f + b) + 2 (p v - 1) c = 19 * 15 + 2 * 7 = 299 us.
    TrainingStep step = pipeline_step(4, 8);
    step.schedule = schedule_named("interleaved_1f1b");
    step.chunks = 2;
    CHECK(run_step(step, hops_of(4, 1_us)).time() == 299_us);
}

TEST_CASE("a split backward sends its gradient before the weight gradient") {
    // zb1p, p 4, m 8, F 10, I 12, W 8, hops of 16 ns at least: without hops m (F + I + W) +
    // (p - 1)(F + I - W) = 240 + 42 = 282 us. Rank 3 to 0 is one hop after each of 3 ranks, twice.
    TrainingStep step = pipeline_step(4, 8);
    step.schedule = schedule_named("zb1p");
    const Duration time = run_step(step, hops_of(4, 16_ns)).time();
    CHECK(time >= 282_us + 6 * 16_ns);
    CHECK(time <= 282_us + 22 * 16_ns);
}

TEST_CASE("a sender that blocks is held for its message's bytes, not for its latency") {
    // Activations of 10 KB at 1 GB/s: 10 us of sending. Two stages, 1 micro-batch: stage 0 sends
    // after its forward and has nothing else to do: no difference. With 2 micro-batches (forward 0,
    // forward 1) its second forward starts 10 us later.
    TrainingStep step = pipeline_step(2, 2);
    step.model.sequence = 625;  // * 8 * 2 bytes
    const Graph graph = ring(2, {1_GBps, Duration::zero(), 1.0});
    for (const LinkModel links : both_models) {
        const auto second_forward = [&](PointToPoint kind) {
            step.point_to_point = kind;
            const Run run = run_step(step, graph, links);
            for (const TaskId task : run.timeline.begin.keys()) {
                const Label& label = run.lowered.labels[task];
                if (label.axis == Axis::compute && label.stage == 0 && label.micro_batch == 1) {
                    return ps(run.timeline.begin[task]);
                }
            }
            return std::int64_t{-1};
        };
        CHECK(second_forward(PointToPoint::overlapped) == 10'000'000);
        CHECK(second_forward(PointToPoint::blocking) == 20'000'000);
    }
}

TEST_CASE("one bucket without overlap adds exactly its all-reduce to the step") {
    // A layer of 12 h^2 + 13 h = 872, tables 128 * 8 + 4 * 8, a norm of 16: 1,944 parameters. A
    // ring of 4 over 1 GB/s and 2 links of 1 us: 6 (ceil(7,776 / 4) B / 1 GB/s + 2 us) = 6 * 3.944
    // us.
    TrainingStep step = step_of(gpt(1, 8, 1, 128, 4));
    step.split.data = 4;
    step.algorithm = *find_algorithm("ring");
    step.overlap_gradients = false;
    set_stage_times(step, ten_and_twenty);
    step.measured.optimizer = 5_us;
    set_micro_batches(step, 3);
    ClusterShape shape;
    shape.devices_per_node = 4;
    shape.node = fabric_of("switch", {1_GBps, 1_us, 1.0});
    const Graph graph = seal_cluster(shape);
    CHECK(stage_parameters_on_device(step, 0) == 1'944);
    for (const LinkModel links : both_models) {
        CHECK(run_step(step, graph, links).time() == 3 * 30_us + 23'664_ns + 5_us);
    }
    // All in one bucket that is complete at the end: nothing to overlap with.
    step.overlap_gradients = true;
    CHECK(run_step(step, graph).time() == 3 * 30_us + 23'664_ns + 5_us);

    // ZeRO-1 with fp32 gradients: the reduce-scatter is half of it, the gather of 2-byte parameters
    // 3 (972 ns + 2 us).
    step.split.sharding = Sharding::optimizer;
    for (const LinkModel links : both_models) {
        CHECK(run_step(step, graph, links).time() ==
              3 * 30_us + 11'832_ns + 5_us + 3 * (972_ns + 2_us));
    }
}

TEST_CASE(
    "overlap is never slower on links of their own, and helps where there is something to hide") {
    for (const Sharding sharding :
         {Sharding::none, Sharding::optimizer, Sharding::gradients, Sharding::weights}) {
        TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
        step.split.data = 8;
        step.split.sharding = sharding;
        step.bucket = 1_MiB;
        set_micro_batches(step, 2);
        const Graph graph = cluster(8, 1);
        for (const LinkModel links : both_models) {
            step.overlap_gradients = step.overlap_parameters = false;
            const Duration apart = run_step(step, graph, links).time();
            step.overlap_gradients = true;
            const Duration gradients = run_step(step, graph, links).time();
            step.overlap_parameters = true;
            const Duration both = run_step(step, graph, links).time();
            CHECK(gradients < apart);
            CHECK(both <= gradients);
            CHECK((sharding == Sharding::none || both < gradients));
        }
    }
}

TEST_CASE("tied embeddings are summed once the data group has summed its buckets") {
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    step.split.tensor = step.split.pipeline = step.split.data = 2;
    step.split.sequence_parallel = true;
    set_micro_batches(step, 4);
    const Run run = run_step(step, cluster(8, 1));
    std::vector<Time> reduced(8), summed(8, Time::max());
    int sums = 0;
    for (const TaskId task : run.lowered.labels.keys()) {
        const Label& label = run.lowered.labels[task];
        const std::uint32_t device = run.lowered.program.device(task).value;
        if (label.axis == Axis::data) {
            reduced[device] = std::max(reduced[device], run.timeline.end[task]);
        }
        if (label.pass != Pass::update) continue;
        if (label.axis != Axis::vocabulary && label.axis != Axis::tensor) continue;
        summed[device] = std::min(summed[device], run.timeline.begin[task]);
        ++sums;
    }
    CHECK(sums == 8 + 8);  // the norms' of each tensor group, and the tied ones of both stages
    for (std::size_t device = 0; device < 8; ++device) CHECK(summed[device] >= reduced[device]);
}

TEST_CASE("of a slow device only the kernels are slower") {
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    step.split.tensor = step.split.data = 2;
    set_micro_batches(step, 2);
    const Graph graph = cluster(1, 4);
    const Run even = run_step(step, graph);
    step.slow_devices = {{.device = 3, .factor = 1.5}};
    const Run slow = run_step(step, graph);
    REQUIRE(even.lowered.program.tasks() == slow.lowered.program.tasks());
    for (const TaskId task : even.lowered.labels.keys()) {
        if (even.lowered.program.kind(task) != TaskKind::compute) continue;
        const Duration before = even.lowered.program.duration(task);
        CHECK(slow.lowered.program.duration(task) ==
              (slow.lowered.program.device(task).value == 3 ? scale(before, 1.5) : before));
    }
    for (const TransferId id : even.lowered.program.transfers().keys()) {
        CHECK(even.lowered.program.transfers()[id].alone ==
              slow.lowered.program.transfers()[id].alone);
    }
    CHECK(slow.time() > even.time());
    CHECK(slow.time() < scale(even.time(), 1.5));

    // It holds up the rest alike, whichever data rank it is of.
    step.slow_devices = {{.device = 1, .factor = 1.5}};
    CHECK(run_step(step, graph).time() == slow.time());
    // Two factors of one device multiply.
    step.slow_devices = {{.device = 3, .factor = 1.2}, {.device = 3, .factor = 1.25}};
    CHECK(run_step(step, graph).time() == slow.time());
}

TEST_CASE("a data-parallel step with a slow device of measured time waits for it") {
    // 2 ranks, 2 micro-batches of 30 us, one rank 1.5 times as slow: 90 us, then the all-reduce of
    // 7,776 B: 2 (3,888 ns + 2 us).
    TrainingStep step = step_of(gpt(1, 8, 1, 128, 4));
    step.split.data = 2;
    step.algorithm = *find_algorithm("ring");
    set_stage_times(step, ten_and_twenty);
    set_micro_batches(step, 2);
    step.slow_devices = {{.device = 1, .factor = 1.5}};
    ClusterShape shape;
    shape.devices_per_node = 2;
    shape.node = fabric_of("switch", {1_GBps, 1_us, 1.0});
    CHECK(run_step(step, seal_cluster(shape)).time() == 90_us + 2 * (3'888_ns + 2_us));
}

TEST_CASE("a message is one per boundary, direction, micro-batch and rank, wrap-around included") {
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    step.split.tensor = 2;
    step.split.pipeline = 4;
    step.split.data = 2;
    step.split.sequence_parallel = true;
    step.schedule = schedule_named("interleaved_1f1b");
    step.chunks = 2;
    set_micro_batches(step, 4);
    const Graph graph = cluster(2, 8);
    const Run run = run_step(step, graph);
    std::size_t sends = 0;
    for (const TaskId task : run.lowered.labels.keys()) {
        if (run.lowered.program.kind(task) != TaskKind::send) continue;
        ++sends;
        // 128 * 256 * 2 bytes, a half for each tensor rank.
        CHECK(run.lowered.program.transfers()[run.lowered.program.transfer(task)].bytes == 32_KiB);
    }
    // 7 boundaries, 2 directions, 4 micro-batches, 2 tensor and 2 data ranks.
    CHECK(sends == 7 * 2 * 4 * 2 * 2);
    // Stages 0 and 4 (rank 0) send 2 * 4 on and 1 * 4 back; stages 1 and 5 8 and 8; 3 and 7 4
    // and 8.
    CHECK(count(run, Axis::pipeline, {0}) == 12);
    CHECK(count(run, Axis::pipeline, {4}) == 16);
    CHECK(count(run, Axis::pipeline, {12}) == 12);
}

TEST_CASE("two runs of a step give the same timeline") {
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    step.split.tensor = step.split.pipeline = 2;
    step.split.data = 4;
    step.split.sharding = Sharding::weights;
    set_micro_batches(step, 4);
    const Graph graph = cluster(2, 8);
    for (const LinkModel links : both_models) {
        const Run a = run_step(step, graph, links), b = run_step(step, graph, links);
        REQUIRE(a.timeline.begin.size() == b.timeline.begin.size());
        CHECK(
            std::equal(a.timeline.begin.begin(), a.timeline.begin.end(), b.timeline.begin.begin()));
        CHECK(std::equal(a.timeline.end.begin(), a.timeline.end.end(), b.timeline.end.begin()));
        CHECK(a.timeline.events == b.timeline.events);
    }
}

TEST_CASE("the order of the axes does not matter where all devices are alike") {
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    step.split.tensor = step.split.pipeline = step.split.data = 2;
    step.split.sequence_parallel = true;
    set_micro_batches(step, 4);
    const Graph graph = cluster(1, 8);
    const auto times = [&](LinkModel links) {
        std::set<Duration> found;
        for (const auto& order : all_orders) {
            step.split.order = order_of(order);
            found.insert(run_step(step, graph, links).time());
        }
        return found;
    };
    CHECK(times(LinkModel::flows).size() == 1);
    // Message by message the norm's ring, which stages enter one after the other, is left earlier
    // or later by who sits next to whom.
    step.gradient_norm = false;
    CHECK(times(LinkModel::flows).size() == 1);
    CHECK(times(LinkModel::messages).size() == 1);
}

TEST_CASE("tensor ranks belong on the near links") {
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    step.split.tensor = 8;
    step.split.data = 2;
    set_micro_batches(step, 2);
    const Graph graph = cluster(2, 8);
    const Duration near = run_step(step, graph).time();
    step.split.order = order_of({data, tensor, pipeline});
    CHECK(run_step(step, graph).time() > near);
}

TEST_CASE("hardware FLOPs are the model's, and a third more with full recomputation") {
    // No padding (1024), unfused attention: 24 B s L h^2 (1 + s / 6h) forward, twice that backward,
    // head 6 B s h V: the model FLOPs of the whole batch. Full recomputation adds a forward of the
    // layers.
    for (const std::int64_t parts : {1, 2}) {
        TrainingStep step = step_of(gpt(8, 256, 8, 1024, 128));
        step.split.tensor = step.split.pipeline = step.split.data = parts;
        set_micro_batches(step, 4);
        const double tokens = static_cast<double>(step.global_batch * 128);
        const double model = tokens * model_flops_per_token(step.model, FlopsConvention::full);
        const double layers = tokens * 8 *
                              (layer_forward_flops(step.model) +
                               attention_forward_flops(step.model, FlopsConvention::full));
        const Graph graph = cluster(1, 8);
        const auto flops = [&] { return run_step(step, graph).lowered.hardware_flops; };
        CHECK(flops() == doctest::Approx(model).epsilon(1e-12));
        step.recompute = Recompute::full;
        CHECK(flops() == doctest::Approx(model + layers).epsilon(1e-12));
    }
}

namespace {

// What a row of the table below chooses, by digit.
struct Factor {
    std::string_view name;
    std::size_t levels;
};
constexpr std::array<Factor, 12> factors{{{"order", 6},
                                          {"schedule", 5},
                                          {"sharding", 4},
                                          {"recompute", 3},
                                          {"sizes", 3},
                                          {"sequence parallel", 2},
                                          {"overlap gradients", 2},
                                          {"overlap parameters", 2},
                                          {"blocking messages", 2},
                                          {"scatter-gather", 2},
                                          {"vocabulary parallel", 2},
                                          {"llama", 2}}};

// Every two levels of every two factors meet in a row; the test sees to it.
constexpr std::string_view pairwise[] = {
    "002110011001", "010120110001", "022220111001", "023000011100", "031211111111", "040120100110",
    "100100110010", "112211011011", "121100001001", "132020010110", "143201001111", "200001000111",
    "200220011000", "212111111001", "221100100011", "230000011011", "243000100110", "301021100001",
    "313221000000", "320010000010", "333110101100", "342100110101", "403120011100", "410000110101",
    "422211000011", "432020010010", "441011011000", "503211100010", "511120010111", "520100101110",
    "532001101000", "540221010100",
};

TrainingStep combined(std::string_view row) {
    const auto level = [&](std::size_t factor) { return row[factor] - '0'; };
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    constexpr std::string_view names[] = {"gpipe", "1f1b", "interleaved_1f1b", "zb1p", "zb1p"};
    constexpr std::array<std::array<std::int64_t, 3>, 3> sizes{{{2, 2, 4}, {4, 2, 2}, {2, 4, 2}}};
    step.split.order = order_of(all_orders[static_cast<std::size_t>(level(0))]);
    step.schedule = schedule_named(names[level(1)]);
    step.chunks = level(1) == 2 || level(1) == 4 ? 2 : 1;
    step.split.sharding = static_cast<Sharding>(level(2));
    step.recompute = static_cast<Recompute>(level(3));
    const auto& size = sizes[static_cast<std::size_t>(level(4))];
    step.split.tensor = size[0];
    step.split.pipeline = size[1];
    step.split.data = size[2];
    step.split.sequence_parallel = level(5) == 1;
    step.overlap_gradients = level(6) == 1;
    step.overlap_parameters = level(7) == 1;
    step.point_to_point = level(8) == 1 ? PointToPoint::blocking : PointToPoint::overlapped;
    step.split.scatter_gather = level(9) == 1;
    step.split.vocabulary_parallel = level(10) == 1;
    if (level(11) == 1) {
        step.model.mlp = Mlp::swiglu;
        step.model.norm = Norm::rmsnorm;
        step.model.positions = Positions::rotary;
        step.model.attention = Attention::flash;
        step.model.kv_heads = 2;
        step.model.tied_embeddings = step.model.bias = step.model.dropout = false;
    }
    step.bucket = 1_MiB;
    set_micro_batches(step, 4);
    return step;
}

}  // namespace

TEST_CASE("every two choices go together, in every order of the axes and both link models") {
    std::set<std::array<std::size_t, 4>> met;
    const Graph graph = cluster(2, 8);
    for (const std::string_view row : pairwise) {
        CAPTURE(row);
        REQUIRE(row.size() == factors.size());
        for (std::size_t a = 0; a < row.size(); ++a) {
            for (std::size_t b = a + 1; b < row.size(); ++b) {
                met.insert(
                    {a, b, static_cast<std::size_t>(row[a]), static_cast<std::size_t>(row[b])});
            }
        }
        const TrainingStep step = combined(row);
        const Run flows = run_step(step, graph, LinkModel::flows);
        const Run messages = run_step(step, graph, LinkModel::messages);
        // What the links carry does not depend on who waits for whom.
        CHECK(std::equal(flows.timeline.carried.begin(), flows.timeline.carried.end(),
                         messages.timeline.carried.begin()));
    }
    std::size_t pairs = 0;
    for (std::size_t a = 0; a < factors.size(); ++a) {
        for (std::size_t b = a + 1; b < factors.size(); ++b) {
            pairs += factors[a].levels * factors[b].levels;
        }
    }
    CHECK(met.size() == pairs);
}

}  // namespace fourfold
