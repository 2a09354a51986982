#pragma once

// Constants of devices and links, fitted on measured times of single kernels, messages and
// collectives. No time of a training step goes in.

#include <cstdint>
#include <vector>

#include "results/fit_report.hpp"
#include "topology/device.hpp"
#include "topology/graph.hpp"
#include "topology/result.hpp"
#include "topology/units.hpp"
#include "workloads/kernels.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

// Measurements, beside GemmSample. Times and sizes are positive, ranks at least 2.

struct MemorySample {
    Bytes bytes{};
    double time_s = 0;
};
struct AllReduceSample {
    std::uint32_t ranks = 2;
    Bytes bytes{};
    double time_s = 0;
};
struct MessageSample {
    Bytes bytes{};
    double time_s = 0;
};

/// A kind of link, and how the software on it behaves.
struct LinkConstants {
    LinkSpec spec;
    TransportCosts costs;
};

/// What the simulator takes on idle links where each rank has one of its own to a switch: a ring,
/// with the start and the edge of `costs`; and a message through the switch.
double all_reduce_time(std::uint32_t ranks, Bytes bytes, const LinkConstants& link);
double message_time(Bytes bytes, const LinkConstants& link);

template <class Subject>
struct Fit {
    Subject constants;  // `base` with the fitted ones replaced, to four digits
    FitReport report;
};

// Each fit starts from the constants of `base` and is the same for the same samples, in whatever
// order. A problem (too few samples, or times of another unit) has the kernel's name as `where`.
// Cost: seconds for a thousand samples; of more, a thousand are fitted, spread evenly over the
// sizes, and all are predicted.

/// tile_efficiency, tile_half, k_ramp, wave_quantization, cap and launch; power stays. The device
/// has the residuals of the measured shapes where other shapes are predicted better with
/// them, beyond chance; those of the base have no part in it.
Result<Fit<Device>> fit_gemm(std::vector<GemmSample> samples, const Device& base);
/// memory_efficiency and memory_launch.
Result<Fit<Device>> fit_memory(std::vector<MemorySample> samples, const Device& base);
/// collective_start, collective_per_sqrt_mib and efficiency; from two numbers of ranks on latency
/// and collective_edge too.
Result<Fit<LinkConstants>> fit_all_reduce(std::vector<AllReduceSample> samples,
                                          const LinkConstants& base);

/// message_overhead, and message_rate up to what the link lets through.
Result<Fit<LinkConstants>> fit_messages(std::vector<MessageSample> samples,
                                        const LinkConstants& base);

}  // namespace fourfold
