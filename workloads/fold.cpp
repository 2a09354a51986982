#include "workloads/fold.hpp"

// Let P be the number of devices in the axes up to one of the order. If P divides a block of the
// graph or the block divides P, then all groups of the next axis meet the blocks in the same
// pattern:
//
//      block  [ . . . . ][ . . . . ]        [ . . ][ . . ][ . . ]
//      P      [ . . ][ . . ]                [ . . . . ][ . . . . ]

#include <algorithm>

namespace fourfold {
namespace {

std::int64_t size_of(const Split& split, SplitAxis axis) {
    switch (axis) {
        case SplitAxis::tensor:
            return split.tensor;
        case SplitAxis::context:
            return split.context;
        case SplitAxis::pipeline:
            return split.pipeline;
        case SplitAxis::data:
            return split.data;
    }
    return 1;
}

}  // namespace

bool ranks_are_alike(const TrainingStep& step, const Graph& graph) {
    if (graph.blocks().empty() || !step.slow_devices.empty()) return false;
    const auto aligned = [&](std::int64_t product) {
        return std::ranges::all_of(graph.blocks(), [&](std::int64_t block) {
            return product % block == 0 || block % product == 0;
        });
    };
    std::int64_t product = 1;
    for (const SplitAxis axis : step.split.order) {
        product *= size_of(step.split, axis);
        if (!aligned(product)) return false;
    }
    return true;
}

}  // namespace fourfold
