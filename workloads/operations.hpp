#pragma once

// What one device does for one stage and micro-batch: a list of operations in issue order.
//
// Kernels and blocking collectives form the main chain: each waits for the one before it. An
// operation that is not blocking is issued when the chain reaches it and runs beside it, in the
// order of its own lane; an operation that needs its result names its ticket in `waits_for`.
//
// workloads/layer.hpp makes the kernels; each file in workloads/axes/ inserts what its axis adds;
// workloads/stage.hpp puts a stage together.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "topology/units.hpp"
#include "workloads/collectives/collective.hpp"
#include "workloads/framework.hpp"

namespace fourfold {

/// Where an operation belongs in the model. Axes find their place by it.
enum class Site : std::uint8_t {
    embedding,
    attention_norm,
    attention_qkv,
    attention_core,
    attention_projection,
    attention_residual,
    mlp_norm,
    mlp_first,
    mlp_activation,
    mlp_second,
    mlp_residual,
    final_norm,
    head,
    loss,
    optimizer,
    whole_stage,  // a measured time
};

/// Which pass: weight gradients are apart so that a schedule may delay them.
/// `backward` is a mixture, where operations are joined.
enum class Pass : std::uint8_t {
    forward,
    recompute,
    input_gradient,
    weight_gradient,
    update,
    backward
};

/// Whose traffic (or work) an operation is.
enum class Axis : std::uint8_t {
    compute,
    tensor,
    vocabulary,
    context,
    sharding,
    data,
    pipeline,
    norm,
    host  // the thread that issues kernels
};

/// Which devices take part in a collective, seen from one of them.
enum class Group : std::uint8_t {
    tensor,     // its tensor group
    context,    // its context group
    replicas,   // those that hold the same weights: its data and context groups
    embedding,  // its peers on the first and the last stage, which share tied embeddings
    model,      // all that hold a part of the same copy of the weights: tensor * pipeline
    world
};

/// "tensor", "data": as reports name them.
std::string_view name_of(Axis axis);
std::string_view name_of(Pass pass);

/// What the host takes to issue one kernel or collective, in seconds.
double launch_seconds(const Host& host, Pass pass);

struct Operation {
    Site site{};
    Pass pass{};
    Axis axis = Axis::compute;
    std::int32_t layer = -1;  // of the stage, -1: not in a layer
    // Kernels
    double seconds = 0;
    double flops = 0;  // hardware FLOPs: recomputation included
    double host = 0;   // the host takes to issue them
    double lead = 0;   // the latest that the device can be held up by it, from the first issue on
    // Collectives (axis != compute)
    CollectiveKind collective{};
    Group group{};
    Bytes bytes{};
    bool blocking = true;
    std::int32_t ticket = -1;                  // of an operation that others in the list wait for
    std::vector<std::int32_t> waits_for = {};  // tickets
    bool waits_for_all = false;                // for everything that this device has issued
    // The same across the lists of one device in one step, where a list issues what a later one
    // needs.
    std::int32_t step_ticket = -1;
    std::int32_t waits_for_step_ticket = -1;
};

}  // namespace fourfold
