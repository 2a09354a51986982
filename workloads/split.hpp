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

    [[nodiscard]] std::int64_t size(SplitAxis axis) const {
        switch (axis) {
            case SplitAxis::tensor:
                return tensor;
            case SplitAxis::context:
                return context;
            case SplitAxis::pipeline:
                return pipeline;
            case SplitAxis::data:
                return data;
        }
        return 1;
    }
    /// Devices that hold the same weights: what gradients are reduced and state is sharded over.
    [[nodiscard]] std::int64_t replicas() const { return data * context; }
};

}  // namespace fourfold
