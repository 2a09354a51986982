#pragma once

// An accelerator: its data sheet, and what kernels measured on it reach of it. Each figure's source
// stands beside it in scenarios/hardware/devices/.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/units.hpp"

namespace fourfold {

/// Times of a matrix multiplication, by tiles and waves (workloads/kernels.hpp has the formula).
struct GemmConstants {
    double tile_efficiency = 1.494;    // of an infinitely large tile, relative to the sheet's peak
    double tile_half = 79.85;          // tile size (harmonic) at which half of that is reached
    double k_ramp = 155;               // elements of k that a tile's prologue and epilogue cost
    double wave_quantization = 0.635;  // weight of whole waves against fractional ones
    double cap = 0.755;                // of peak * power, sustained
    double launch_s = 0.7e-6;
    double power = 1.0;  // clock under load relative to the device of the fit
};

/// How the operands of a matrix multiplication lie in memory, in the words of BLAS: a linear layer
/// multiplies tn forward, nn for the gradient of its input and nt for that of its weights.
enum class GemmLayout : std::uint8_t { any, tn, nn, nt };
inline constexpr std::array<std::string_view, 4> gemm_layout_names{"any", "tn", "nn", "nt"};

/// A measured matrix multiplication, and what the formula misses of it.
struct GemmResidual {
    std::array<double, 4> log2_sizes{};  // of m, n, k and batch
    GemmLayout layout = GemmLayout::any;
    bool is_aligned = true;
    double log_ratio = 0;  // of the measured time to the formula's
};

/// A fused attention kernel: fractions of peak, and how long the last of its blocks run alone, in
/// times of the longest block (workloads/kernels.hpp has the formula).
struct AttentionConstants {
    double forward = 0.55, forward_tail = 0.85;
    double backward = 0.42, backward_tail = 0.45;
};

struct Device {
    std::string name;
    double peak = 0;              // FLOP/s, dense, 16 bit
    double memory_bandwidth = 0;  // B/s
    Bytes memory{};
    int multiprocessors = 1;
    double memory_efficiency = 0.85;  // of memory_bandwidth, in bandwidth-bound kernels
    double memory_launch_s = 2e-6;    // per bandwidth-bound kernel
    GemmConstants gemm;
    std::vector<GemmResidual> gemm_residuals;  // ratios: they hold where a constant is changed
    AttentionConstants flash;                  // FlashAttention-2 or cuDNN
    AttentionConstants flash_1{.forward = 0.40, .backward = 0.30};  // the first FlashAttention
    double flash_launch_forward_s = 5e-6;
    double flash_launch_backward_s = 8e-6;
    bool fitted = false;  // on kernels of this very device, not taken from the sheet
};

}  // namespace fourfold
