// Qi et al. 2023, Zero Bubble Pipeline Parallelism (arXiv 2401.10241): the times that the authors
// profiled (Table 9) against our kernels, and the bubbles that they computed of those times (Table
// 5) against our schedules on the event engine.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.hpp"
#include "tests/support/training.hpp"
#include "workloads/lower.hpp"
#include "workloads/stage.hpp"

using namespace fourfold;

namespace {

/// A row of Table 9: of a stage and one micro-batch, the forward, the input gradient (the paper's
/// B), the weight gradient, and a hop. Milliseconds.
struct Profiled {
    std::string_view model;
    std::uint32_t ranks, micro_batches;
    double forward, input_gradient, weight_gradient, hop;
};

constexpr Profiled profiled[] = {{"1.5B", 8, 24, 18.522, 18.086, 9.337, 0.601},
                                 {"1.5B", 8, 32, 18.513, 18.086, 9.331, 0.626},
                                 {"1.5B", 8, 64, 18.546, 18.097, 9.321, 0.762},
                                 {"6.2B", 8, 24, 29.718, 29.444, 19.927, 0.527},
                                 {"6.2B", 8, 32, 29.802, 29.428, 19.530, 0.577},
                                 {"6.2B", 8, 64, 29.935, 29.621, 19.388, 0.535},
                                 {"14.6B", 16, 48, 11.347, 11.248, 8.132, 0.377},
                                 {"14.6B", 16, 64, 11.307, 11.254, 8.101, 0.379},
                                 {"14.6B", 16, 128, 11.325, 11.308, 8.109, 0.378},
                                 {"28.3B", 32, 96, 10.419, 10.207, 7.715, 0.408},
                                 {"28.3B", 32, 128, 10.408, 10.204, 7.703, 0.408},
                                 {"28.3B", 32, 256, 10.402, 10.248, 7.698, 0.460}};

const Profiled& row_of(std::string_view model, std::uint32_t micro_batches) {
    const auto found = std::ranges::find_if(profiled, [&](const Profiled& row) {
        return row.model == model && row.micro_batches == micro_batches;
    });
    REQUIRE(found != std::end(profiled));
    return *found;
}

/// What tests/published/convert.py writes, apart from name and schedule: the cluster of the paper,
/// a layer less on both ends, the vocabulary of the SentencePiece tokenizer of the authors'
/// scripts.
std::string scenario_of(std::string_view model, int nodes, int pipeline, std::string_view batch) {
    std::string text = "model: {" + std::string(model);
    text +=
        ", vocab: 32000, sequence: 1024,\n"
        "        mlp: gelu, norm: layernorm, positions: learned, tied_embeddings: true}\n"
        "framework: zero-bubble\n"
        "cluster: {base: zero-bubble, nodes: " +
        std::to_string(nodes) +
        "}\n"
        "parallel: {tensor: 1, pipeline: " +
        std::to_string(pipeline) +
        ", data: 1, stage_layers: lighter_ends}\n"
        "batch: {" +
        std::string(batch) +
        "}\n"
        "schedule: {kind: zb1p}\n"
        "recompute: none\n"
        "precision: fp16\n"
        "overlap: {optimizer: true}\n";
    return text;
}

TrainingStep step_of_text(const std::string& text) {
    const auto catalog = embedded_catalog();
    REQUIRE(catalog);
    auto scenario = parse_scenario(text, "zero_bubble.yaml", {}, *catalog);
    REQUIRE_MESSAGE(scenario, to_text(scenario.error()));
    return std::move(scenario->step);
}

/// Mean over the stages, in milliseconds. One device a stage: no collectives.
double mean_stage_time(const TrainingStep& step, ActionKind kind) {
    double sum = 0;
    for (std::int64_t stage = 0; stage < step.stages(); ++stage) {
        for (const Operation& operation : stage_operations(step, {.stage = stage, .kind = kind})) {
            REQUIRE(operation.axis == Axis::compute);
            sum += operation.seconds;
        }
    }
    return sum / static_cast<double>(step.stages()) * 1e3;
}

struct Spans {
    Duration makespan{}, longest_rank{};
};

/// The schedule of `ranks` neighbours that are a hop apart; senders are not held. A rank has
/// `chunks` chunks, each with its part of the stage's times.
Spans run_schedule(std::string_view name, const Profiled& row, std::uint32_t chunks) {
    const auto part = [&](double ms) {
        return from_seconds(ms * 1e-3 / static_cast<double>(chunks));
    };
    const ChunkTimes times{.forward = part(row.forward),
                           .input_gradient = part(row.input_gradient),
                           .weight_gradient = part(row.weight_gradient),
                           .hop = from_seconds(row.hop * 1e-3)};
    const PipelineShape shape{
        .ranks = row.ranks, .chunks = chunks, .micro_batches = row.micro_batches};
    const Schedule& schedule = *schedule_named(name);
    REQUIRE_FALSE(schedule.refuse(shape).has_value());
    const Graph graph = ring(row.ranks, {1_GBps, times.hop, 1.0});
    const Result<Lowered> lowered = lower_pipeline(schedule, shape, times, graph);
    REQUIRE(lowered.has_value());
    const Program& program = lowered->program;
    const Timeline timeline = run_audited(graph, program, LinkModel::flows);
    check_bounds(graph, program, timeline);

    std::vector<Time> first(row.ranks, Time::max()), last(row.ranks);
    for (const TaskId task : timeline.begin.keys()) {
        if (program.kind(task) != TaskKind::compute) continue;
        const std::uint32_t rank = program.device(task).value;
        first[rank] = std::min(first[rank], timeline.begin[task]);
        last[rank] = std::max(last[rank], timeline.end[task]);
    }
    Spans spans;
    for (std::uint32_t rank = 0; rank < row.ranks; ++rank) {
        spans.makespan = std::max(spans.makespan, last[rank].time_since_epoch());
        spans.longest_rank = std::max(spans.longest_rank, last[rank] - first[rank]);
    }
    return spans;
}

/// (cost - m (TF + TB + TW)) / cost, as printed: of four decimals.
double bubble_rate(const Profiled& row, Duration cost) {
    const double work =
        row.micro_batches * (row.forward + row.input_gradient + row.weight_gradient) * 1e-3;
    return std::round((1 - work / to_seconds(cost)) * 1e4) / 1e4;
}

}  // namespace

TEST_CASE("Stages of the zero-bubble models are within 6 % of their profiles, W within 15 %") {
    // Without the host, which the profile of Table 9 may or may not contain.
    // W is known to be slower than measured, in all four: +5 to +7 % with 3 and 6 sequences a
    // micro-batch, +14 % with one (14.6B and 28.3B), where the matrix multiplication of a weight
    // gradient has k = 1024 and the fit's ramp counts most.
    const struct {
        std::string_view name;
        std::string text;
        std::uint32_t micro_batches;
    } models[] = {
        {"1.5B",
         scenario_of("layers: 22, hidden: 2304, heads: 24, kv_heads: 24, ffn: 9216", 1, 8,
                     "global: 144, micro: 6"),
         24},
        {"6.2B",
         scenario_of("layers: 30, hidden: 4096, heads: 32, kv_heads: 32, ffn: 16384", 1, 8,
                     "global: 72, micro: 3"),
         24},
        {"14.6B",
         scenario_of("layers: 46, hidden: 5120, heads: 40, kv_heads: 40, ffn: 20480", 2, 16,
                     "global: 48, micro: 1"),
         48},
        {"28.3B",
         scenario_of("layers: 62, hidden: 6144, heads: 48, kv_heads: 48, ffn: 24576", 4, 32,
                     "global: 96, micro: 1"),
         96},
    };
    for (const auto& [name, text, micro_batches] : models) {
        CAPTURE(name);
        const TrainingStep step = step_of_text(text);
        const Profiled& row = row_of(name, micro_batches);
        const double forward = mean_stage_time(step, ActionKind::forward) / row.forward - 1;
        const double input =
            mean_stage_time(step, ActionKind::input_gradient) / row.input_gradient - 1;
        const double weight =
            mean_stage_time(step, ActionKind::weight_gradient) / row.weight_gradient - 1;
        const double whole =
            (forward * row.forward + input * row.input_gradient + weight * row.weight_gradient) /
            (row.forward + row.input_gradient + row.weight_gradient);
        CHECK(std::abs(whole) < 0.06);
        CHECK(std::abs(forward) < 0.06);
        CHECK(std::abs(input) < 0.06);
        CHECK(weight > 0);
        CHECK(weight < 0.15);
    }
}

TEST_CASE("Schedules on the times of Table 9 have the bubbles of Table 5, to four decimals") {
    // Computed by the authors' own simulator: a hop delays, a sender is not held, the backward of
    // 1F1B is TB + TW. Cost is the makespan, for ZB-H2 the longest span of a rank.
    const struct {
        std::string_view model;
        std::uint32_t micro_batches;
        double one_f_one_b, zb_h1, zb_h2;
    } table_5[] = {{"1.5B", 24, 0.2431, 0.1585, 0.1083},   {"1.5B", 32, 0.1985, 0.1242, 0.0837},
                   {"1.5B", 64, 0.1240, 0.0674, 0.0444},   {"6.2B", 24, 0.2347, 0.1323, 0.0698},
                   {"6.2B", 32, 0.1898, 0.1045, 0.0559},   {"6.2B", 64, 0.1091, 0.0554, 0.0294},
                   {"14.6B", 48, 0.2552, 0.1397, 0.0672},  {"14.6B", 64, 0.2082, 0.1088, 0.0516},
                   {"14.6B", 128, 0.1251, 0.0576, 0.0266}, {"28.3B", 96, 0.2646, 0.1421, 0.0641},
                   {"28.3B", 128, 0.2168, 0.1106, 0.0490}, {"28.3B", 256, 0.1352, 0.0594, 0.0257}};
    for (const auto& printed : table_5) {
        CAPTURE(printed.model);
        CAPTURE(printed.micro_batches);
        const Profiled& row = row_of(printed.model, printed.micro_batches);
        CHECK(bubble_rate(row, run_schedule("1f1b", row, 1).makespan) ==
              doctest::Approx(printed.one_f_one_b).epsilon(1e-9));
        CHECK(bubble_rate(row, run_schedule("zb1p", row, 1).makespan) ==
              doctest::Approx(printed.zb_h1).epsilon(1e-9));
        CHECK(bubble_rate(row, run_schedule("zb_h2", row, 1).longest_rank) ==
              doctest::Approx(printed.zb_h2).epsilon(1e-9));
    }
}

TEST_CASE("Interleaved 1F1B with every dependency held has a slightly larger bubble than Table 5") {
    // Table 5 lets a chunk begin before the chunk in front of it has sent, for all but the first
    // micro-batch of each group of p. `strict` is the same computation with that dependency held
    // everywhere, by a program written independently of this one.
    const struct {
        std::string_view model;
        std::uint32_t micro_batches, chunks;
        double printed, strict;
    } rows[] = {{"1.5B", 24, 3, 0.1055, 0.1090},   {"1.5B", 32, 3, 0.0818, 0.0847},
                {"1.5B", 64, 3, 0.0443, 0.0461},   {"6.2B", 24, 4, 0.0808, 0.0827},
                {"6.2B", 32, 4, 0.0628, 0.0644},   {"6.2B", 64, 4, 0.0320, 0.0328},
                {"14.6B", 48, 3, 0.1104, 0.1136},  {"14.6B", 64, 3, 0.0852, 0.0878},
                {"14.6B", 128, 3, 0.0445, 0.0459}, {"28.3B", 96, 2, 0.1493, 0.1528},
                {"28.3B", 128, 2, 0.1164, 0.1192}, {"28.3B", 256, 2, 0.0624, 0.0641}};
    for (const auto& [model, micro_batches, chunks, printed, strict] : rows) {
        CAPTURE(model);
        CAPTURE(micro_batches);
        const Profiled& row = row_of(model, micro_batches);
        const double ours =
            bubble_rate(row, run_schedule("interleaved_1f1b", row, chunks).makespan);
        CHECK(ours == doctest::Approx(strict).epsilon(1e-9));
        CHECK(ours > printed);
        CHECK(ours < printed + 0.004);
    }
}
