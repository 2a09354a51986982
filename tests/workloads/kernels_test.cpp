#include "workloads/kernels.hpp"

#include <doctest/doctest.h>

#include <cmath>

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
