#pragma once

// Times of single kernels on a device, in seconds (a model's figure; it becomes whole picoseconds
// once, where operations are lowered).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "topology/device.hpp"

namespace fourfold {

struct Gemm {
    std::int64_t m = 1, n = 1, k = 1;
    std::int64_t batch = 1;
    GemmLayout layout = GemmLayout::any;
    friend auto operator<=>(const Gemm&, const Gemm&) = default;
};

/// A measured one.
struct GemmSample {
    Gemm gemm;
    double time_s = 0;
};

double flops(const Gemm& gemm);

/// Tiles, split-k, blended waves, ramp in k, ceiling, bytes, launch. 16-bit operands. Where the
/// device has residuals of measured shapes, times what those nearby took of it; cost: linear in
/// their number.
double gemm_time(const Gemm& gemm, const Device& device);

/// A table of measured shapes has no more, and none of them is as many times as slow or as fast as
/// the formula: that is another unit.
inline constexpr std::size_t gemm_shapes_max = 10'000;
inline constexpr double gemm_ratio_max = 100;

/// The measured time over the formula's with the constants of `device`, without its residuals.
double gemm_ratio(const GemmSample& sample, const Device& device);

/// What the formula with the constants of `device` misses of `samples`, the same in whatever order
/// they are. Requires: at most one of a shape and layout.
std::vector<GemmResidual> gemm_residuals(std::vector<GemmSample> samples, const Device& device);

/// bytes / (efficiency * bandwidth) + launches.
double memory_time(double bytes, const Device& device, int launches = 1);

/// The part of a fused causal attention core that this device computes.
struct FlashCore {
    std::int64_t batch_heads = 1;  // sequences * query heads
    std::int64_t queries = 1;      // of each sequence
    std::int64_t keys = 1;
    std::int64_t head_dim = 1;
    bool first_generation = false;  // FlashAttention, not FlashAttention-2 or cuDNN
};
double flash_forward_time(const FlashCore& core, const Device& device);
double flash_backward_time(const FlashCore& core, const Device& device);

}  // namespace fourfold
