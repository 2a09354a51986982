#include "results/calibrate.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/training.hpp"

namespace fourfold {
namespace {

LinkConstants nvlink3() {
    return {.spec = {.bandwidth = 300_GBps, .latency = 1130_ns, .efficiency = 0.8133},
            .costs = {.message_overhead = 60_us,
                      .message_rate = 55_GBps,
                      .collective_start = 29_us,
                      .collective_per_sqrt_mib = 4860_ns,
                      .collective_edge = 0.346}};
}

/// Shapes as of transformer layers, small and large, with the times that `device` takes.
std::vector<GemmSample> gemms_on(const Device& device) {
    std::vector<GemmSample> samples;
    for (const std::int64_t m : {1024, 2048, 4096}) {
        for (const std::int64_t n : {576, 1536, 5120, 12'288}) {
            for (const std::int64_t k : {128, 512, 2048, 8192}) {
                const Gemm gemm{m, n, k, 1};
                samples.push_back({gemm, gemm_time(gemm, device)});
            }
        }
    }
    return samples;
}

std::vector<MemorySample> copies_on(const Device& device) {
    std::vector<MemorySample> samples;
    for (std::int64_t bytes = 1 << 16; bytes <= 1 << 30; bytes *= 2) {
        samples.push_back({{bytes}, memory_time(static_cast<double>(bytes), device)});
    }
    return samples;
}

std::vector<AllReduceSample> all_reduces_on(const LinkConstants& link,
                                            const std::vector<std::uint32_t>& ranks) {
    std::vector<AllReduceSample> samples;
    for (const std::uint32_t n : ranks) {
        for (std::int64_t bytes = 1 << 18; bytes <= 1 << 30; bytes *= 4) {
            samples.push_back({n, {bytes}, all_reduce_time(n, {bytes}, link)});
        }
    }
    return samples;
}

std::vector<MessageSample> messages_on(const LinkConstants& link) {
    std::vector<MessageSample> samples;
    for (std::int64_t bytes = 1 << 16; bytes <= 1 << 28; bytes *= 2) {
        samples.push_back({{bytes}, message_time({bytes}, link)});
    }
    return samples;
}

const FittedConstant& constant(const FitReport& report, std::string_view key) {
    const auto found = std::ranges::find(report.constants, key, &FittedConstant::key);
    REQUIRE(found != report.constants.end());
    return *found;
}

template <class Subject>
Fit<Subject> sound(Result<Fit<Subject>> fit) {
    REQUIRE_MESSAGE(fit.has_value(), (fit ? "" : fit.error().what));
    return std::move(*fit);
}

}  // namespace

TEST_CASE("The time of an all-reduce that is fitted is the one that the simulator takes") {
    const LinkConstants link = nvlink3();
    for (const std::uint32_t ranks : {2U, 5U, 8U}) {
        ClusterShape shape;
        shape.devices_per_node = ranks;
        shape.node = fabric_of("switch", link.spec);
        const Graph graph = seal_cluster(shape);
        Routes routes(graph);
        ProgramDraft draft;
        Transfers transfers(routes, draft, *find_algorithm("ring"), link.costs, {});
        std::vector<DeviceId> members;
        for (std::uint32_t i = 0; i < ranks; ++i) members.push_back({i});
        const GroupId group = transfers.add_group(members);
        for (const Bytes bytes : {64_KiB, 1_MiB, 96_MiB, 1024_MiB}) {
            const auto made = transfers.collective(group, CollectiveKind::all_reduce, bytes, 0);
            REQUIRE(made.has_value());
            CHECK(to_seconds(draft.transfer(*made).alone) ==
                  doctest::Approx(all_reduce_time(ranks, bytes, link)).epsilon(1e-6));
            const Transfer message = draft.transfer(transfers.message({0}, {1}, bytes));
            CHECK(to_seconds(message.alone + message.latency) ==
                  doctest::Approx(message_time(bytes, link)).epsilon(1e-6));
        }
    }
}

TEST_CASE("The formula of the all-reduce gives the table's times") {
    // 96 MiB on 8: 29 + 7 * 4.52 + 4.86 sqrt(96) + 1.75 * 100,663,296 / (244,000 (1 - 0.346 / 8))
    // us = 29 + 31.64 + 47.62 + 754.6
    CHECK(all_reduce_time(8, 96_MiB, nvlink3()) == doctest::Approx(862.9e-6).epsilon(1e-4));
}

TEST_CASE("GEMM constants are found again from the times that they made") {
    Device truth = a100();
    truth.gemm = {.tile_efficiency = 1.3,
                  .tile_half = 60,
                  .k_ramp = 200,
                  .wave_quantization = 0.4,
                  .cap = 0.68,
                  .launch_s = 3e-6,
                  .power = 1};
    const Fit<Device> fit = sound(fit_gemm(gemms_on(truth), a100()));
    CHECK(fit.report.samples == 48);
    CHECK(fit.report.different == 48);
    CHECK(fit.report.errors.front().of == "all");
    CHECK(fit.report.errors.front().base > 0.05);
    CHECK(fit.report.errors.front().fitted < 0.005);
    CHECK(fit.report.errors.front().cross_validated < 0.01);
    CHECK(fit.constants.gemm.cap == doctest::Approx(0.68).epsilon(0.01));
    CHECK(fit.constants.gemm.k_ramp == doctest::Approx(200).epsilon(0.1));
    CHECK(fit.constants.gemm.wave_quantization == doctest::Approx(0.4).epsilon(0.1));
    CHECK(fit.constants.gemm.power == 1);
    CHECK(fit.constants.memory_efficiency == 0.85);
    CHECK(constant(fit.report, "cap").base == 0.755);
    CHECK(constant(fit.report, "cap").fitted == fit.constants.gemm.cap);
}

TEST_CASE("Where the base is right, it stays") {
    const Fit<Device> fit = sound(fit_gemm(gemms_on(a100()), a100()));
    for (const FittedConstant& one : fit.report.constants) CHECK(one.fitted == one.base);
    CHECK(fit.report.errors.front().fitted == 0);
}

TEST_CASE("One measurement in ten that went wrong does not move the constants") {
    Device truth = a100();
    truth.gemm.cap = 0.6;
    std::vector<GemmSample> samples = gemms_on(truth);
    for (std::size_t i = 0; i < samples.size(); i += 10) samples[i].time_s *= 3;
    const Fit<Device> fit = sound(fit_gemm(samples, a100()));
    CHECK(fit.constants.gemm.cap == doctest::Approx(0.6).epsilon(0.01));
}

TEST_CASE("The order of rows does not change a fit") {
    Device truth = a100();
    truth.gemm.cap = 0.6;
    std::vector<GemmSample> samples = gemms_on(truth);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        samples[i].time_s *= 1 + 0.01 * static_cast<double>(i % 7);
    }
    const Fit<Device> fit = sound(fit_gemm(samples, a100()));
    std::ranges::reverse(samples);
    const Fit<Device> reversed = sound(fit_gemm(samples, a100()));
    CHECK(to_json(fit.report) == to_json(reversed.report));
}

/// Shapes an octave apart, as long as the formula says times a factor that changes slowly with what
/// it does not see, which of m and n is the larger: from 0.9 to 1.1.
std::vector<GemmSample> tuned_gemms() {
    std::vector<GemmSample> samples;
    for (const std::int64_t m : {1024, 2048, 4096}) {
        for (const std::int64_t n : {768, 1536, 3072, 6144}) {
            for (const std::int64_t k : {512, 1024, 2048, 4096}) {
                const Gemm gemm{m, n, k, 1};
                const double octaves = std::log2(static_cast<double>(m) / static_cast<double>(n));
                samples.push_back({gemm, gemm_time(gemm, a100()) * (1 + 0.1 * std::sin(octaves))});
            }
        }
    }
    return samples;
}

TEST_CASE("Where the formula misses alike shapes alike, their table is kept and predicts better") {
    const Fit<Device> fit = sound(fit_gemm(tuned_gemms(), a100()));
    const MeanErrors& all = fit.report.errors.front();
    CHECK(fit.report.tries_shapes);
    CHECK(all.cross_validated > 0.05);
    CHECK(all.with_shapes < 0.6 * all.cross_validated);
    REQUIRE(fit.report.shapes.size() == 48);
    CHECK(fit.constants.gemm_residuals.size() == 48);
    for (const GemmSample& one : tuned_gemms()) {
        CHECK(gemm_time(one.gemm, fit.constants) ==
              doctest::Approx(one.time_s).scale(0).epsilon(1e-6));
    }
}

/// Factors from 0.9 to 1.1.
std::vector<double> noise(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<double> factors;
    for (std::size_t i = 0; i < count; ++i)
        factors.push_back(0.9 + 0.2 * (static_cast<double>(random()) / 0x1p32));
    return factors;
}

TEST_CASE("Where shapes differ by noise alone, no table is kept") {
    for (const unsigned seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
        CAPTURE(seed);
        std::vector<GemmSample> samples = tuned_gemms();
        const std::vector<double> factors = noise(samples.size(), seed);
        for (std::size_t i = 0; i < samples.size(); ++i) {
            samples[i].time_s = gemm_time(samples[i].gemm, a100()) * factors[i];
        }
        const Fit<Device> fit = sound(fit_gemm(samples, a100()));
        CHECK(fit.report.tries_shapes);
        CHECK(fit.report.errors.front().with_shapes != fit.report.errors.front().cross_validated);
        CHECK(fit.report.shapes.empty());
        CHECK(fit.constants.gemm_residuals.empty());
    }
}

TEST_CASE("A table has the median of the rows of a shape and layout, whatever their order") {
    std::vector<GemmSample> samples = tuned_gemms();
    const GemmSample first = samples.front();
    for (const double factor : {1.02, 30.0, 1.01}) {
        samples.push_back({first.gemm, factor * first.time_s});
    }
    Gemm weights = first.gemm;
    weights.layout = GemmLayout::nt;
    for (const double factor : {1.3, 1.1, 1.2}) {
        samples.push_back({weights, factor * first.time_s});
    }
    const FitReport report = sound(fit_gemm(samples, a100())).report;
    REQUIRE(report.shapes.size() == 49);
    // 1, 1.01, 1.02 and 30 times: the middle of 1.01 and 1.02.
    CHECK(report.shapes[0].gemm == first.gemm);
    CHECK(report.shapes[0].time_s == doctest::Approx(1.015 * first.time_s).scale(0).epsilon(1e-9));
    CHECK(report.shapes[1].gemm == weights);
    CHECK(report.shapes[1].time_s == doctest::Approx(1.2 * first.time_s).scale(0).epsilon(1e-9));

    std::ranges::reverse(samples);
    const FitReport reversed = sound(fit_gemm(samples, a100())).report;
    CHECK(to_json(reversed) == to_json(report));
    for (std::size_t i = 0; i < report.shapes.size(); ++i) {
        CHECK(reversed.shapes[i].gemm == report.shapes[i].gemm);
        CHECK(reversed.shapes[i].time_s == report.shapes[i].time_s);
    }
}

TEST_CASE("No shape predicts itself: batches and layouts of one share a fold") {
    // Pairs of layouts that share a factor of their own, at random between shapes. A table that let
    // one of a pair predict the other would be perfect.
    std::vector<GemmSample> samples;
    const std::vector<double> factors = noise(48, 7);
    for (const GemmSample& one : tuned_gemms()) {
        const double factor = factors[samples.size() / 2];
        for (const GemmLayout layout : {GemmLayout::any, GemmLayout::nn}) {
            samples.push_back({one.gemm, factor * gemm_time(one.gemm, a100())});
            samples.back().gemm.layout = layout;
        }
    }
    const FitReport report = sound(fit_gemm(samples, a100())).report;
    CHECK(report.samples == 96);
    CHECK(report.different == 48);
    CHECK(report.errors.front().with_shapes > 0.03);
}

TEST_CASE("A time that no formula explains is not kept, nor is a table of the base fitted on") {
    std::vector<GemmSample> samples = tuned_gemms();
    samples.back().time_s *= 1000;
    Device base = a100();
    base.gemm_residuals = gemm_residuals({{samples.front().gemm, 1.0}}, base);
    const Fit<Device> fit = sound(fit_gemm(samples, base));
    CHECK(fit.report.shapes.size() == 47);
    CHECK(to_json(fit.report) == to_json(sound(fit_gemm(samples, a100())).report));
}

TEST_CASE("All rows of a size are in one fold, so that none predicts itself") {
    // 15 sizes measured once, and one size 50 times, at twice the time that the others suggest. A
    // fit on all follows the 50. Without them nothing speaks for twice the time: they come out at
    // half of it.
    std::vector<MemorySample> samples = copies_on(a100());
    const MemorySample odd{{(1 << 30) + 1}, 2 * memory_time(1 << 30, a100())};
    samples.insert(samples.end(), 50, odd);
    const Fit<Device> fit = sound(fit_memory(samples, a100()));
    CHECK(fit.report.samples == 65);
    CHECK(fit.report.different == 16);
    CHECK(fit.report.errors.back().of == "64 MiB and more");
    CHECK(fit.report.errors.back().samples == 55);
    CHECK(fit.report.errors.back().fitted < 0.15);
    CHECK(fit.report.errors.back().cross_validated == doctest::Approx(50.0 / 55 / 2).epsilon(0.1));
}

TEST_CASE("Memory constants are found again, and what the rows do not tell stays the base's") {
    Device truth = a100();
    truth.memory_efficiency = 0.79;
    truth.memory_launch_s = 4.5e-6;
    const Fit<Device> fit = sound(fit_memory(copies_on(truth), a100()));
    CHECK(fit.constants.memory_efficiency == doctest::Approx(0.79).epsilon(1e-3));
    CHECK(fit.constants.memory_launch_s == doctest::Approx(4.5e-6).epsilon(0.01));
    CHECK(fit.report.errors.size() == 4);  // all, and three classes of size

    // From 64 GiB on, 2 us are less than a ten-thousandth.
    std::vector<MemorySample> large;
    for (const std::int64_t gib : {64, 80, 96, 112}) {
        large.push_back({{gib << 30}, memory_time(static_cast<double>(gib << 30), truth)});
    }
    const Fit<Device> blind = sound(fit_memory(large, a100()));
    CHECK_FALSE(constant(blind.report, "memory_launch").is_seen);
    CHECK(constant(blind.report, "memory_efficiency").is_seen);
    CHECK(blind.constants.memory_launch_s == 2e-6);
}

TEST_CASE("All-reduce constants are found again, also from a base that has none") {
    const LinkConstants truth = nvlink3();
    LinkConstants base;
    base.spec = {.bandwidth = 300_GBps, .latency = 1_us, .efficiency = 1};
    const Fit<LinkConstants> fit = sound(fit_all_reduce(all_reduces_on(truth, {2, 4, 8}), base));
    CHECK(fit.report.errors.front().fitted < 0.01);
    CHECK(fit.constants.spec.efficiency == doctest::Approx(0.8133).epsilon(0.02));
    CHECK(to_seconds(fit.constants.spec.latency) == doctest::Approx(1.13e-6).epsilon(0.1));
    CHECK(to_seconds(fit.constants.costs.collective_start) == doctest::Approx(29e-6).epsilon(0.1));
    CHECK(fit.constants.costs.collective_edge == doctest::Approx(0.346).epsilon(0.1));
}

TEST_CASE("From one number of ranks, latency and edge are not fitted") {
    const LinkConstants truth = nvlink3();
    const Fit<LinkConstants> fit = sound(fit_all_reduce(all_reduces_on(truth, {8}), truth));
    CHECK(fit.report.constants.size() == 3);
    CHECK(fit.constants.spec.latency == truth.spec.latency);
    CHECK(fit.constants.costs.collective_edge == truth.costs.collective_edge);
}

TEST_CASE("A message's overhead and rate are found again, the link's efficiency stays") {
    LinkConstants truth = nvlink3();
    truth.costs.message_overhead = 14_us;
    truth.costs.message_rate = 80_GBps;
    const Fit<LinkConstants> fit = sound(fit_messages(messages_on(truth), nvlink3()));
    CHECK(to_seconds(fit.constants.costs.message_overhead) == doctest::Approx(14e-6).epsilon(0.01));
    CHECK(static_cast<double>(fit.constants.costs.message_rate.value) ==
          doctest::Approx(80e9).epsilon(0.01));
    CHECK(fit.constants.spec.efficiency == 0.8133);

    // No faster than the link: 244 GB/s.
    truth.costs.message_rate = {};
    const Fit<LinkConstants> fast = sound(fit_messages(messages_on(truth), nvlink3()));
    CHECK(static_cast<double>(fast.constants.costs.message_rate.value) ==
          doctest::Approx(244e9).epsilon(0.01));
}

TEST_CASE("Of many rows a thousand are fitted, and all are predicted") {
    Device truth = a100();
    truth.memory_efficiency = 0.7;
    std::vector<MemorySample> samples;
    for (std::int64_t i = 1; i <= 5000; ++i) {
        samples.push_back({{i << 20}, memory_time(static_cast<double>(i << 20), truth)});
    }
    const Fit<Device> fit = sound(fit_memory(samples, a100()));
    CHECK(fit.constants.memory_efficiency == doctest::Approx(0.7).epsilon(1e-3));
    CHECK(fit.report.errors.front().samples == 5000);
}

TEST_CASE("Too few rows, and times of another unit, are refused with what to do") {
    std::vector<GemmSample> few = gemms_on(a100());
    few.resize(11);
    few.push_back(few.back());
    const auto too_few = fit_gemm(few, a100());
    REQUIRE_FALSE(too_few.has_value());
    CHECK(too_few.error().where == "gemm");
    CHECK(too_few.error().what ==
          "11 different shapes in 12 gemm rows; to fit 6 constants, measure at least 12");
    CHECK(fit_memory({}, a100()).error().what ==
          "0 different sizes in 0 memory rows; to fit 2 constants, measure at least 4");

    std::vector<GemmSample> milliseconds = gemms_on(a100());
    for (GemmSample& one : milliseconds) one.time_s *= 1e-3;
    CHECK(fit_gemm(milliseconds, a100()).error().what ==
          "48 of 48 gemm rows are more than 2 times as fast as a peak of 312 TFLOP/s allows; give "
          "times in microseconds, sizes in bytes or elements, and the base that was measured");
    // 1 GiB on 8 ranks in 8,265 us is 227 GB/s, 75.8 % of the link.
    std::vector<AllReduceSample> nanoseconds = all_reduces_on(nvlink3(), {2, 4, 8});
    for (AllReduceSample& one : nanoseconds) one.time_s *= 1e3;
    CHECK(fit_all_reduce(nanoseconds, nvlink3()).error().what ==
          "the fastest of 21 all_reduce rows reaches 0.076 % of a link of 300 GB/s; give times in "
          "microseconds, sizes in bytes or elements, and the base that was measured");
}

TEST_CASE("A report is a table of constants and a table of errors") {
    const FitReport report{
        .kernel = "memory",
        .different_what = "sizes",
        .samples = 30,
        .different = 15,
        .constants = {{"memory_efficiency", ConstantUnit::none, 0.85, 0.7912, 0.79, 0.7925, true},
                      {"memory_launch", ConstantUnit::seconds, 2e-6, 2e-6, 2e-6, 3.5e-6, false}},
        .errors = {{"all", 30, 0.0712, 0.0123, 0.0131}, {"below 1 MiB", 4, 0.21, 0.03, 0.04}}};
    CHECK(to_text(report, "copies.csv") ==
          "memory: 30 rows, 15 different sizes, of copies.csv\n"
          "  constant           base  fitted  folds from      to\n"
          "  memory_efficiency  0.85  0.7912        0.79  0.7925\n"
          "  memory_launch      2 us    2 us        2 us  3.5 us  not seen in these rows: kept\n"
          "\n"
          "  mean error   rows    base  fitted  cross-validated\n"
          "  all            30   7.1 %   1.2 %            1.3 %\n"
          "  below 1 MiB     4  21.0 %   3.0 %            4.0 %\n");
    FitReport useless = report;
    useless.errors.front().fitted = 0.36;
    CHECK(to_text(useless, "copies.csv")
              .ends_with("\n  below 1 MiB     4  21.0 %   3.0 %            4.0 %\n"
                         "  no constants make the formula describe these rows\n"));
    FitReport gemm = report;
    gemm.kernel = "gemm";
    gemm.constants.clear();
    gemm.errors = {{"all", 30, 0.0712, 0.0123, 0.0131, 0.0102}};
    gemm.tries_shapes = true;
    const std::string text =
        "gemm: 30 rows, 15 different sizes, of g.csv\n"
        "  constant  base  fitted  folds from  to\n"
        "\n"
        "  mean error  rows   base  fitted  cross-validated  with shapes\n"
        "  all           30  7.1 %   1.2 %            1.3 %        1.0 %\n";
    CHECK(to_text(gemm, "g.csv") ==
          text + "  measured shapes are not kept: the constants alone predict others as well\n");
    gemm.shapes.resize(15);
    CHECK(to_text(gemm, "g.csv") ==
          text +
              "  15 measured shapes and layouts are kept: with them others are predicted better\n");
    CHECK(
        shapes_source_text(gemm) ==
        "kernel-fit: the 15 shapes and layouts of gemm, medians; with them cross-validated 1.0 %");
    CHECK(to_json(gemm).dump() ==
          R"({"rows":30,"different":15,"constants":{},"errors":[{"of":"all","rows":30,)"
          R"("base":0.0712,"fitted":0.0123,"cross_validated":0.0131,"with_shapes":0.0102}],)"
          R"("shapes":15})");
    CHECK(source_text(report, "copies.csv") ==
          "kernel-fit on 30 rows of copies.csv, mean error 1.2 %, cross-validated 1.3 %");
    CHECK(to_json(report).dump() ==
          R"({"rows":30,"different":15,"constants":{)"
          R"("memory_efficiency":{"base":0.85,"fitted":0.7912,"fold_min":0.79,"fold_max":0.7925,)"
          R"("seen":true},"memory_launch_s":{"base":2e-06,"fitted":2e-06,"fold_min":2e-06,)"
          R"("fold_max":3.5e-06,"seen":false}},"errors":[{"of":"all","rows":30,"base":0.0712,)"
          R"("fitted":0.0123,"cross_validated":0.0131},{"of":"below 1 MiB","rows":4,"base":0.21,)"
          R"("fitted":0.03,"cross_validated":0.04}]})");
    CHECK(value_text(ConstantUnit::bytes_per_second, 55e9) == "55 GB/s");
}

}  // namespace fourfold
