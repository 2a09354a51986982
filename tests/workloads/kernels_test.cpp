#include "workloads/kernels.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace fourfold {
namespace {

Device a100_sxm() {
    Device device;
    device.name = "a100-sxm-80gb";
    device.peak = 312e12;
    device.memory_bandwidth = 2.039e12;
    device.memory = {80'000'000'000};
    device.multiprocessors = 108;
    device.gemm.power = 1.04517;  // 0.919 * 267.9 / (0.755 * 312), as in the device's YAML
    return device;
}

double us(const Gemm& gemm) { return 1e6 * gemm_time(gemm, a100_sxm()); }

TEST_CASE("matrix multiplications on an A100 take the times of the fit") {
    // As the program that fitted the constants printed them, to 0.01 us.
    const auto near = [](double value, double expected) {
        CHECK(value > expected - 0.01);
        CHECK(value < expected + 0.01);
    };
    near(us({.m = 4096, .n = 4096, .k = 4096}), 587.14);
    near(us({.m = 8192, .n = 2304, .k = 6144}), 1020.47);
    near(us({.m = 8192, .n = 6144, .k = 768}), 382.69);
    near(us({.m = 1024, .n = 3072, .k = 1024}), 33.86);
    near(us({.m = 2048, .n = 2048, .k = 96, .batch = 32}), 268.74);
    near(us({.m = 6144, .n = 50304, .k = 2304}), 6069.43);
}

TEST_CASE("a multiplication of one wave is worked by hand") {
    // 64 x 64 x 64: every tile is one block on 108 multiprocessors, full = 1/108, waves = 0.635 +
    // 0.365 = 1. The 64 x 64 tile is cheapest: harmonic 32, reached 1.494 * 32 / 111.85 = 0.42743;
    // 2 * 64 * 64 * (64 + 155) = 1,794,048 FLOPs; / (312e12 * 1.04517 / 108 * 0.42743) = 1.3901 us.
    CHECK(us({.m = 64, .n = 64, .k = 64}) == doctest::Approx(1.3901 + 0.7).epsilon(1e-4));
}

TEST_CASE("a multiplication is never faster than its ceiling or its bytes") {
    const Device device = a100_sxm();
    for (const std::int64_t size : {64, 100, 1000, 5000, 20000}) {
        const Gemm square{.m = size, .n = size, .k = size};
        CHECK(gemm_time(square, device) >= flops(square) / (device.peak * 1.04517 * 0.755));
        const Gemm thin{.m = size, .n = size, .k = 1};
        const auto s = static_cast<double>(size);
        CHECK(gemm_time(thin, device) >= 2 * (2 * s + s * s) / (0.85 * 2.039e12));
    }
}

TEST_CASE("a long k with few tiles is split") {
    // 512 x 512: 16 tiles of 128 x 128 leave 92 multiprocessors idle; four parts of k fill them.
    const Gemm gemm{.m = 512, .n = 512, .k = 65536};
    const double unsplit_floor =  // 64 tiles of 64 x 64, one wave, unsplit
        2.0 * 64 * 64 * (65536 + 155) / (312e12 * 1.04517 / 108 * 1.494 * 32 / 111.85);
    CHECK(gemm_time(gemm, a100_sxm()) < unsplit_floor);
}

TEST_CASE("batched attention with a head size that is no multiple of 8 leaves the tensor cores") {
    const Gemm aligned{.m = 2048, .n = 2048, .k = 152, .batch = 12};
    const Gemm odd{.m = 2048, .n = 2048, .k = 150, .batch = 12};
    CHECK(gemm_time(odd, a100_sxm()) == doctest::Approx(flops(odd) / 12e12 + 0.7e-6));
    CHECK(gemm_time(aligned, a100_sxm()) < gemm_time(odd, a100_sxm()) / 4);
}

/// An A100 on which shapes take so many times the formula's time.
struct Measured {
    Gemm gemm;
    double ratio;
};
Device measured_device(const std::vector<Measured>& shapes) {
    Device device = a100_sxm();
    std::vector<GemmSample> samples;
    for (const Measured& one : shapes) {
        samples.push_back({one.gemm, one.ratio * gemm_time(one.gemm, device)});
    }
    device.gemm_residuals = gemm_residuals(samples, device);
    return device;
}

double correction(const Gemm& gemm, const Device& device) {
    return gemm_time(gemm, device) / gemm_time(gemm, a100_sxm());
}

TEST_CASE("two measured shapes nearby correct the formula by the weighted mean of what it misses") {
    // Of 4096 x 4096 x 4096, twice the m is 1 away, weight (1 - 1/2)^2 = 0.25; twice the n and half
    // the k are sqrt(2) away, weight (0.70711 - 1/2)^2 = 0.042893. The edge has (1/2)^2 = 0.25.
    // (0.25 ln 1.2 + 0.042893 ln 0.9) / (0.25 + 0.25 + 0.042893) = 0.075634, exp of it: 1.07857.
    const Device device = measured_device(
        {{{.m = 8192, .n = 4096, .k = 4096}, 1.2}, {{.m = 4096, .n = 8192, .k = 2048}, 0.9}});
    CHECK(correction({.m = 4096, .n = 4096, .k = 4096}, device) ==
          doctest::Approx(1.07857).epsilon(1e-5));
}

TEST_CASE("a measured shape takes the time that it was measured with") {
    const Device device = measured_device({{{.m = 4096, .n = 4096, .k = 4096}, 1.2},
                                           {{.m = 4096, .n = 4096, .k = 4160}, 0.9},
                                           {{.m = 4096, .n = 4096, .k = 4096, .batch = 2}, 0.8}});
    CHECK(correction({.m = 4096, .n = 4096, .k = 4096}, device) ==
          doctest::Approx(1.2).epsilon(1e-9));
    CHECK(correction({.m = 4096, .n = 4096, .k = 4096, .batch = 2}, device) ==
          doctest::Approx(0.8).epsilon(1e-9));
}

TEST_CASE("a measured shape says less and less of others, and nothing two octaves away") {
    const Device device = measured_device({{{.m = 1024, .n = 1024, .k = 1024}, 1.5}});
    double before = 1.5;
    for (const std::int64_t m : {1088, 1280, 1536, 2048, 3072, 4032}) {
        CAPTURE(m);
        const double now = correction({.m = m, .n = 1024, .k = 1024}, device);
        CHECK(now < before);
        CHECK(now > 1);
        before = now;
    }
    CHECK(before < 1.0001);
    CHECK(correction({.m = 4096, .n = 1024, .k = 1024}, device) == 1);
    CHECK(correction({.m = 2048, .n = 2048, .k = 2048, .batch = 2}, device) == 1);
    CHECK(correction({.m = 64, .n = 65536, .k = 1 << 20}, device) == 1);
}

TEST_CASE(
    "a measured shape says nothing of other layouts, nor of sizes that tensor cores dislike") {
    const Gemm forward{.m = 1024, .n = 1024, .k = 1024, .batch = 1, .layout = GemmLayout::tn};
    Gemm weights = forward, unknown = forward, odd = forward;
    weights.layout = GemmLayout::nt;
    unknown.layout = GemmLayout::any;
    odd.n = 1023;
    const Device device = measured_device({{forward, 1.5}});
    CHECK(correction(forward, device) == doctest::Approx(1.5).epsilon(1e-9));
    CHECK(correction(unknown, device) == doctest::Approx(1.5).epsilon(1e-9));
    CHECK(correction(weights, device) == 1);
    CHECK(correction(odd, device) == 1);
    // One measured without a word on its layout stands for all, here beside one that is known.
    const Device both = measured_device({{forward, 1.5}, {unknown, 1.2}});
    CHECK(correction(weights, both) == doctest::Approx(1.2).epsilon(1e-9));
    CHECK(correction(forward, both) == doctest::Approx(std::sqrt(1.5 * 1.2)).epsilon(1e-9));
}

TEST_CASE("the order of measured shapes changes nothing") {
    std::vector<Measured> shapes;
    for (const std::int64_t n : {512, 768, 1024, 1536, 2048, 3072}) {
        shapes.push_back({{.m = 1024, .n = n, .k = 1024}, 1 + 1e-4 * static_cast<double>(n)});
    }
    const Gemm gemm{.m = 1024, .n = 1280, .k = 1024};
    const double time = gemm_time(gemm, measured_device(shapes));
    std::ranges::reverse(shapes);
    CHECK(gemm_time(gemm, measured_device(shapes)) == time);
    std::ranges::rotate(shapes, shapes.begin() + 2);
    CHECK(gemm_time(gemm, measured_device(shapes)) == time);
}

TEST_CASE("a device whose constants change after its shapes were measured changes with them") {
    // Uncertainty makes the matrix units 5 % better; a what-if may double the peak.
    const Gemm gemm{.m = 4096, .n = 4096, .k = 4096};
    Device device = measured_device({{gemm, 1.2}});
    device.gemm.power *= 1.05;
    Device plain = a100_sxm();
    plain.gemm.power *= 1.05;
    CHECK(gemm_time(gemm, device) ==
          doctest::Approx(1.2 * gemm_time(gemm, plain)).scale(0).epsilon(1e-9));
    CHECK(gemm_time(gemm, plain) < gemm_time(gemm, a100_sxm()) / 1.04);
}

TEST_CASE("a bandwidth-bound kernel moves its bytes at 85 % of the sheet, plus its launches") {
    CHECK(memory_time(0.85 * 2.039e9, a100_sxm()) == doctest::Approx(1e-3 + 2e-6));
    CHECK(memory_time(0, a100_sxm(), 7) == doctest::Approx(14e-6));
}

TEST_CASE("fused attention computes causal blocks of 128 queries, and its last blocks run alone") {
    // 32 heads, 2048 queries and keys, d 128: 512 blocks of 128 queries, each on average half of
    // 2048 keys and the diagonal: 17/32 of a longest block. 108 multiprocessors.
    const FlashCore core{.batch_heads = 32, .queries = 2048, .keys = 2048, .head_dim = 128};
    const Device device = a100_sxm();
    const auto longest = [&](double matmuls, double reached) {
        return matmuls * 2 * 128.0 * 2048 * 128 / (312e12 / 108 * reached);
    };
    const double blocks = 512 * (17.0 / 32) / 108;
    CHECK(flash_forward_time(core, device) ==
          doctest::Approx(longest(2, device.flash.forward) * (blocks + device.flash.forward_tail) +
                          5e-6));
    CHECK(flash_backward_time(core, device) ==
          doctest::Approx(
              longest(5, device.flash.backward) * (blocks + device.flash.backward_tail) + 8e-6));
}

TEST_CASE("fused attention of an A100 takes as long as measured, with many heads and with few") {
    // SimuMax (github MooreThreads/SimuMax @4dcaae51, configs/system/a100_pcie.json), 4096 queries
    // and keys, d 128: fractions of 312 TFLOP/s of the whole score matrix, forward and backward.
    Device device = a100_sxm();
    device.flash = {.forward = 0.68, .forward_tail = 0.85, .backward = 0.54, .backward_tail = 0.45};
    const struct {
        std::int64_t heads;
        double forward, backward, within;
    } measured[] = {{64, 1.187, 1.005, 0.06},
                    {32, 1.132, 0.976, 0.06},
                    {16, 0.991, 0.882, 0.06},
                    {8, 0.777, 0.763, 0.06},
                    {4, 0.514, 0.675, 0.15}};
    for (const auto& row : measured) {
        CAPTURE(row.heads);
        const FlashCore core{
            .batch_heads = row.heads, .queries = 4096, .keys = 4096, .head_dim = 128};
        const double matmul = 2.0 * static_cast<double>(row.heads) * 4096 * 4096 * 128;
        const double forward = 2 * matmul / (312e12 * row.forward);
        const double backward = 5 * matmul / (312e12 * row.backward);
        CHECK(std::abs(flash_forward_time(core, device) / forward - 1) < row.within);
        CHECK(std::abs(flash_backward_time(core, device) / backward - 1) < row.within);
    }
}

}  // namespace
}  // namespace fourfold
