#pragma once

// Times of single kernels on a device, in seconds (a model's figure; it becomes whole picoseconds
// once, where operations are lowered).

#include <cstdint>

#include "topology/device.hpp"

namespace fourfold {

struct Gemm {
    std::int64_t m = 1, n = 1, k = 1;
    std::int64_t batch = 1;
};

double flops(const Gemm& gemm);

/// Tiles, split-k, blended waves, ramp in k, ceiling, bytes, launch. 16-bit operands.
double gemm_time(const Gemm& gemm, const Device& device);

/// bytes / (efficiency * bandwidth) + launches.
double memory_time(double bytes, const Device& device, int launches = 1);

/// A fused causal attention core: `batch_heads` = sequences * query heads on this device.
double flash_forward_time(std::int64_t batch_heads, std::int64_t sequence, std::int64_t head_dim,
                          const Device& device);
double flash_backward_time(std::int64_t batch_heads, std::int64_t sequence, std::int64_t head_dim,
                           const Device& device);

}  // namespace fourfold
