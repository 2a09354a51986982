#pragma once

// What the training software adds to the model and the machine. Profiles with the source of each
// figure are in scenarios/hardware/frameworks/.

#include <optional>
#include <string>

#include "topology/units.hpp"

namespace fourfold {

/// The host thread that feeds a device: kernel i of an action cannot start before the host has
/// issued the kernels 1 .. i, and its queue is empty where an action begins.
struct Host {
    Duration forward_launch{};   // of one kernel or collective; recomputed forwards too
    Duration backward_launch{};  // autograd's, without Python
    Duration micro_batch{};      // a third before its forward, two before its backward
    Duration step{};             // before the optimizer
    bool blocking = false;       // CUDA_LAUNCH_BLOCKING: the host waits for each kernel
    Duration wait{};             // ... and takes this long to go on
};

struct Framework {
    std::string name = "none";
    Host host;
    /// ZeRO-1 all-reduces gradients, of which each replica then uses its share (DeepSpeed,
    /// runtime/pipe/engine.py); otherwise they are reduce-scattered.
    bool reduce_whole_gradients = false;
    bool fused_softmax = true;        // scale, mask and softmax of unfused attention in one kernel
    double loss_forward_bytes = 32;   // per logit; a fused cross entropy moves less
    double loss_backward_bytes = 14;  // per logit
    /// Per parameter and micro-batch, to add a gradient to the sum; not given: 2 above what the
    /// matrix multiplication moves where gradients are fp32 (a fused accumulation), 6 for 16 bit.
    std::optional<double> accumulate_bytes;
    double optimizer_bytes = 48;  // per parameter that the device owns
    /// Speed of its normalization kernels relative to the device's other bandwidth-bound ones.
    double norm_forward = 1, norm_backward = 1;
    /// Share of a tensor collective that moves beneath the matrix multiplication beside it (user
    /// buffers of Transformer Engine).
    double tensor_overlap = 0;
    /// Sharded weights of the next layer are gathered once the backward of this one is done
    /// (PyTorch's BackwardPrefetch.BACKWARD_POST), not while it runs (BACKWARD_PRE).
    bool prefetch_after_backward = false;
    /// A gather or reduction of sharded weights and the kernels that it runs beside slow each other
    /// down: both last longer by this share of the shorter.
    double sharding_contention = 0;
};

}  // namespace fourfold
