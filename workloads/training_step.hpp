#pragma once

// Everything that decides what one training step does, apart from the machine.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/device.hpp"
#include "topology/graph.hpp"
#include "topology/units.hpp"
#include "workloads/collectives/collective.hpp"
#include "workloads/framework.hpp"
#include "workloads/jitter.hpp"
#include "workloads/schedules/schedule.hpp"
#include "workloads/split.hpp"
#include "workloads/transformer.hpp"

namespace fourfold {

enum class Recompute : std::uint8_t { none, selective, full };
enum class PointToPoint : std::uint8_t { overlapped, blocking };

/// Measured times that replace the compute model, for one micro-batch on one device.
struct MeasuredTimes {
    Duration forward{}, input_gradient{}, weight_gradient{};
};

struct Measured {
    /// Of a whole pipeline stage, its tensor and sharding collectives included: none are lowered.
    std::optional<MeasuredTimes> stage;
    /// Of one layer, without its collectives.
    std::optional<MeasuredTimes> layer;
    std::optional<MeasuredTimes> embedding, head;
    std::optional<Duration> optimizer;
};

/// Software behaviour of collectives and messages on one kind of link, as measured; zeros are
/// ideal.
struct TransportCosts {
    Duration message_overhead{};         // software cost of one point-to-point message
    BytesPerSecond message_rate{};       // ... which goes no faster than this; 0: as links allow
    Duration collective_start{};         // of one all-reduce, before its first step
    Duration collective_per_sqrt_mib{};  // of one all-reduce, times sqrt(bytes / MiB)
    double collective_edge = 0;          // a ring of n reaches (1 - edge / n) of the links' rate
};

struct SlowDevice {
    std::uint32_t device = 0;
    double factor = 1;  // > 1: slower
};

/// Messages of others on the same links, one after the other, until the step is over.
struct BackgroundFlow {
    DeviceId from, to;
    Bytes bytes{};     // of one message
    Duration at{};     // when the first one begins
    Duration every{};  // the next one begins so much later, or when the last one has left; 0: none
    bool steady = false;  // each takes all of `every` where links are fluid: a constant stream
};

struct TrainingStep {
    Transformer model;
    Device device;
    Split split;
    std::int64_t global_batch = 1;  // sequences
    std::int64_t micro_batch = 1;   // sequences
    const Schedule* schedule = nullptr;
    std::int64_t chunks = 1;
    std::vector<std::int64_t> stage_layers;  // of each stage in order; empty: as many on each
    PointToPoint point_to_point = PointToPoint::overlapped;
    Recompute recompute = Recompute::none;
    std::int64_t gradient_bytes = 4;  // of one reduced gradient: 4 (fp32) or 2
    Bytes bucket = 25_MiB;            // gradients reduced at once (PyTorch DDP's default)
    bool overlap_gradients = true;    // buckets start during the last micro-batch's backward
    bool overlap_parameters = true;   // gathered parameters arrive one layer ahead (FSDP prefetch)
    bool gradient_norm = true;        // the all-reduce of the norm before the optimizer (clipping)
    /// The optimizer step is validated afterwards (Qi et al. 2024, sec. 4): no stage waits for the
    /// norm, and a stage begins its next step while others still end this one.
    bool overlap_optimizer = false;
    /// The head's weight gradients of all micro-batches follow the last stage's last backward,
    /// while the other stages still drain (Megatron-Core, defer_embedding_wgrad_compute).
    bool defer_head_gradient = false;
    Framework framework;
    const Algorithm* algorithm = nullptr;  // of every collective; nullptr: auto
    TransportCosts node, fabric;
    Measured measured;
    std::vector<SlowDevice> slow_devices;
    Jitter jitter;
    std::vector<BackgroundFlow> background;
    std::vector<DeviceId> devices;  // of each rank, ascending; empty: the first ones of the cluster

    [[nodiscard]] std::int64_t micro_batches() const {
        return global_batch / (micro_batch * split.data);
    }
    /// Of one micro-batch on one device.
    [[nodiscard]] std::int64_t tokens() const {
        return micro_batch * model.sequence / split.context;
    }
    [[nodiscard]] std::int64_t stages() const { return split.pipeline * chunks; }
};

/// The vocabulary as the tables have it: a multiple of 128, or of 128 * tensor where it is split
/// (Megatron-LM, --make-vocab-size-divisible-by).
std::int64_t padded_vocabulary(const TrainingStep& step);

/// Whether the split, batch and schedule can run this model on `devices` devices. A problem's
/// `where` is the key as a scenario writes it ("parallel.tensor", "batch.global").
Result<void> check(const TrainingStep& step, std::size_t devices);

}  // namespace fourfold
