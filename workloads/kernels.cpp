#include "workloads/kernels.hpp"

// Kernel times.
//
// Matrix multiplication. A GPU computes C in tiles, one per multiprocessor at a time, so a shape
// costs whole waves of tiles; a tile costs its k steps plus a prologue and an epilogue; a large
// tile reuses its operands more and reaches more of the peak; long kernels meet the power limit.
//
//       n
//   +---+---+-.     tiles   = ceil(m / tm) * ceil(n / tn) * batch * split
//   | tile  |       full    = tiles / multiprocessors           (waves, a fraction)
// m +---+---+-.     waves   = q ceil(full) + (1 - q) max(full, 1)
//   |   |   |       harmonic = tm tn / (tm + tn)
//   '   '   '       reached = tile_efficiency * harmonic / (harmonic + tile_half)
//                   time    = waves * 2 tm tn (k / split + k_ramp) / (peak power / mps * reached)
//
// The library (cuBLAS) picks the best tile and the best split of k; splits write fp32 partial sums.
// The result is never below the sustained ceiling nor below the bytes of the operands. Constants:
// fitted on 183 GEMM shapes of an A100-PCIe (SimuMax, configs/system/a100_pcie.json, mean error
// 3.5 %, cross-validated 3.6 %); `power` moves them to other devices. `q` = wave_quantization.
//
// A library is tuned shape by shape, which no formula knows. A device that comes with measured
// shapes corrects the formula by what it misses of those nearby:
//
//     time = formula * exp(sum of w_i log(measured_i / formula_i) / (1 / reach^2 + sum of w_i))
//     w_i  = (1 / d_i - 1 / reach)^2 where d_i < reach, otherwise 0
//     d_i  = distance of (log2 m, log2 n, log2 k, log2 batch)          reach = 2: two octaves
//
// A measured shape comes out as measured. 1 / reach^2 stands for a shape at the edge of reach that
// the formula gets right, so that the correction fades with the distance and is gone at the edge,
// without a step (Franke and Little's weights: Renka 1988, ACM TOMS 14, sec. 2). Only shapes of the
// same layout and alignment are near each other: others are other kernels of the library.
// Measured as calibrate does, on SimuMax's shapes: 3.7 % -> 2.9 % on the A100-PCIe and 10.1 %
// -> 9.1 % on the B200; 3.4 % and 9.4 % without layouts; three to five nearest shapes do as well,
// but jump.
//
// Fused attention (Dao 2023, arXiv 2307.08691) keeps its scores on chip and works in blocks of 128
// queries. A causal block computes the keys up to its own diagonal, whole; the longest sees all:
//
//   queries  |###.........|   time = longest block * (blocks / 2 * (1 + 128 / keys) / mps + tail)
//            |######......|
//            |#########...|   The tail is what the last blocks leave idle: it counts where there
//            |############|   are few heads. Fitted with the fraction of peak on 8 A100 and 22
//                             B200 shapes of SimuMax (mean error 2 % and 8 %).
//
// Everything else is limited by memory bandwidth.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fourfold {
namespace {

struct Tile {
    double m, n;
};

// The tiles and splits of the fit: cuBLAS has more, these explain its times (k / split >= 512).
constexpr std::array<Tile, 6> tiles{
    {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}}};
constexpr std::array<double, 3> splits{1, 2, 4};
constexpr double split_k_min = 512;

constexpr double operand_bytes = 2;
constexpr double partial_sum_bytes = 4;  // fp32, one copy per split
// Partial sums mostly stay in the second-level cache: the fit charges them at the sheet's rate.

// Batched attention GEMMs whose head size is no multiple of 8 elements (16 bytes) leave the tensor
// cores: 12 of 312 TFLOP/s explains the BLOOM runs with 96 and 108 heads at h = 14400 (github
// bigscience-workshop/bigscience, train/tr11-176B-ml/chronicles-prequel.md @ 9e64edec).
constexpr double misaligned_fraction = 12.0 / 312.0;
constexpr std::int64_t alignment = 8;

constexpr double reach = 2;       // log2 of a ratio of sizes
constexpr double nearest = 1e-6;  // of a distance: nearer is the same shape

constexpr double causal_half = 0.5;      // of the score matrix is computed
constexpr double attention_block = 128;  // queries
constexpr double forward_matmuls = 2;    // Q K^T and P V
constexpr double backward_matmuls = 5;   // Q K^T again, dP, dV, dQ, dK

double real(std::int64_t n) { return static_cast<double>(n); }

double tiled_time(const Gemm& gemm, const Device& device, const Tile& tile, double split) {
    const GemmConstants& fit = device.gemm;
    const double count = std::ceil(real(gemm.m) / tile.m) * std::ceil(real(gemm.n) / tile.n) *
                         real(gemm.batch) * split;
    const double full = count / device.multiprocessors;
    const double waves =
        fit.wave_quantization * std::ceil(full) + (1 - fit.wave_quantization) * std::max(full, 1.0);
    const double harmonic = tile.m * tile.n / (tile.m + tile.n);
    const double reached = fit.tile_efficiency * harmonic / (harmonic + fit.tile_half);
    const double rate = device.peak * fit.power / device.multiprocessors * reached;
    const double tile_flops = 2 * tile.m * tile.n * (real(gemm.k) / split + fit.k_ramp);
    const double sums = split > 1 ? partial_sum_bytes * real(gemm.m) * real(gemm.n) *
                                        real(gemm.batch) * split / device.memory_bandwidth
                                  : 0;
    return waves * tile_flops / rate + sums;
}

bool is_aligned(const Gemm& gemm) { return gemm.k % alignment == 0 && gemm.n % alignment == 0; }

std::array<double, 4> log2_sizes(const Gemm& gemm) {
    return {std::log2(real(gemm.m)), std::log2(real(gemm.n)), std::log2(real(gemm.k)),
            std::log2(real(gemm.batch))};
}

double formula_time(const Gemm& gemm, const Device& device) {
    double best = std::numeric_limits<double>::infinity();
    for (const Tile& tile : tiles) {
        for (const double split : splits) {
            if (split > 1 && real(gemm.k) / split < split_k_min) continue;
            best = std::min(best, tiled_time(gemm, device, tile, split));
        }
    }
    const double ceiling = flops(gemm) / (device.peak * device.gemm.power * device.gemm.cap);
    const double bytes =
        operand_bytes * real(gemm.batch) *
        (real(gemm.m) * real(gemm.k) + real(gemm.k) * real(gemm.n) + real(gemm.m) * real(gemm.n));
    const double traffic = bytes / (device.memory_efficiency * device.memory_bandwidth);
    const bool misaligned = gemm.batch > 1 && !is_aligned(gemm);
    const double slow = misaligned ? flops(gemm) / (misaligned_fraction * device.peak) : 0;
    return std::max({best, ceiling, traffic, slow}) + device.gemm.launch_s;
}

// log(time / formula), from the measured shapes within reach.
double correction(const Gemm& gemm, std::span<const GemmResidual> residuals) {
    const std::array<double, 4> at = log2_sizes(gemm);
    const bool aligned = is_aligned(gemm);
    double sum = 0, weights = 1 / (reach * reach);
    for (const GemmResidual& near : residuals) {
        double square = 0;
        for (std::size_t i = 0; i < at.size(); ++i) {
            square += (at[i] - near.log2_sizes[i]) * (at[i] - near.log2_sizes[i]);
        }
        if (square >= reach * reach || near.is_aligned != aligned) continue;
        const bool is_known = near.layout != GemmLayout::any && gemm.layout != GemmLayout::any;
        if (is_known && near.layout != gemm.layout) continue;
        const double root = 1 / std::max(std::sqrt(square), nearest) - 1 / reach;
        sum += root * root * near.log_ratio;
        weights += root * root;
    }
    return sum / weights;
}

double flash_time(double matmuls, const FlashCore& core, double reached, double tail,
                  const Device& device) {
    const double rate = device.peak * reached / device.multiprocessors;
    const double block =
        matmuls * 2 * attention_block * real(core.keys) * real(core.head_dim) / rate;
    const double blocks = real(core.batch_heads) * real(core.queries) / attention_block;
    const double masked = causal_half * (1 + attention_block / real(core.keys));
    return block * (blocks * masked / device.multiprocessors + tail);
}

const AttentionConstants& constants_of(const FlashCore& core, const Device& device) {
    return core.first_generation ? device.flash_1 : device.flash;
}

}  // namespace

double flops(const Gemm& gemm) {
    return 2 * real(gemm.m) * real(gemm.n) * real(gemm.k) * real(gemm.batch);
}

double gemm_time(const Gemm& gemm, const Device& device) {
    const double formula = formula_time(gemm, device);
    if (device.gemm_residuals.empty()) return formula;
    return formula * std::exp(correction(gemm, device.gemm_residuals));
}

double gemm_ratio(const GemmSample& sample, const Device& device) {
    return sample.time_s / formula_time(sample.gemm, device);
}

std::vector<GemmResidual> gemm_residuals(std::vector<GemmSample> samples, const Device& device) {
    std::ranges::sort(samples, {}, &GemmSample::gemm);
    std::vector<GemmResidual> residuals;
    residuals.reserve(samples.size());
    for (const GemmSample& sample : samples) {
        residuals.push_back({.log2_sizes = log2_sizes(sample.gemm),
                             .layout = sample.gemm.layout,
                             .is_aligned = is_aligned(sample.gemm),
                             .log_ratio = std::log(gemm_ratio(sample, device))});
    }
    return residuals;
}

double memory_time(double bytes, const Device& device, int launches) {
    return bytes / (device.memory_efficiency * device.memory_bandwidth) +
           launches * device.memory_launch_s;
}

double flash_forward_time(const FlashCore& core, const Device& device) {
    const AttentionConstants& fit = constants_of(core, device);
    return flash_time(forward_matmuls, core, fit.forward, fit.forward_tail, device) +
           device.flash_launch_forward_s;
}

double flash_backward_time(const FlashCore& core, const Device& device) {
    const AttentionConstants& fit = constants_of(core, device);
    return flash_time(backward_matmuls, core, fit.backward, fit.backward_tail, device) +
           device.flash_launch_backward_s;
}

}  // namespace fourfold
