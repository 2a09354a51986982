#include "workloads/fold.hpp"

// Let P be the number of devices in the axes up to one of the order. If P divides a block of the
// graph or the block divides P, then all groups of the next axis meet the blocks in the same
// pattern:
//
//      block  [ . . . . ][ . . . . ]        [ . . ][ . . ][ . . ]
//      P      [ . . ][ . . ]                [ . . . . ][ . . . . ]

#include <algorithm>

namespace fourfold {

bool ranks_are_alike(const TrainingStep& step, const Graph& graph) {
    if (graph.blocks().empty() || !step.slow_devices.empty()) return false;
    const auto aligned = [&](std::int64_t product) {
        return std::ranges::all_of(graph.blocks(), [&](std::int64_t block) {
            return product % block == 0 || block % product == 0;
        });
    };
    std::int64_t product = 1;
    for (const SplitAxis axis : step.split.order) {
        product *= step.split.size(axis);
        if (!aligned(product)) return false;
    }
    return true;
}

}  // namespace fourfold
