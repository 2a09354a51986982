#pragma once

// How training is divided. The axes multiply: tensor * context * pipeline * data = devices.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "topology/result.hpp"
#include "workloads/transformer.hpp"

namespace fourfold {

enum class SplitAxis : std::uint8_t { tensor, context, pipeline, data };

/// The number that a split or a seat has on an axis.
template <class T>
constexpr auto& on_axis(T& of, SplitAxis axis) {
    switch (axis) {
        case SplitAxis::tensor:
            return of.tensor;
        case SplitAxis::context:
            return of.context;
        case SplitAxis::pipeline:
            return of.pipeline;
        case SplitAxis::data:
            break;
    }
    return of.data;
}

/// What of the state is sharded over the replicas: ZeRO-0, 1, 2, 3.
enum class Sharding : std::uint8_t { none, optimizer, gradients, weights };

/// What is gathered and reduced at once when weights are sharded.
enum class ShardUnit : std::uint8_t { layer, model };

struct Split {
    std::int64_t tensor = 1;
    std::int64_t context = 1;  // cuts the sequence, attention included
    std::int64_t pipeline = 1;
    std::int64_t data = 1;
    Sharding sharding = Sharding::none;
    ShardUnit shard_unit = ShardUnit::layer;
    bool sequence_parallel = false;
    bool scatter_gather =
        true;  // pipeline messages are cut by tensor rank (Megatron 2021, sec. 4.1)
    bool vocabulary_parallel = true;  // embedding and head are split by tensor rank
    /// Innermost first: neighbours on the first axis are neighbouring devices.
    std::array<SplitAxis, 4> order{SplitAxis::tensor, SplitAxis::context, SplitAxis::data,
                                   SplitAxis::pipeline};

    [[nodiscard]] std::int64_t size(SplitAxis axis) const { return on_axis(*this, axis); }
    /// Devices that hold the same weights: what gradients are reduced and state is sharded over.
    [[nodiscard]] std::int64_t replicas() const { return data * context; }
};

}  // namespace fourfold
