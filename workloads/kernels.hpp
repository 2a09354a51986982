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
