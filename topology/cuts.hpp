#pragma once

#include "topology/graph.hpp"

namespace fourfold {

/// What the links carry from the first half of the devices, in their order, to the others, or back
/// if that is less: the least cut between the halves, found as a maximum flow. The halves are not
/// chosen to make it small. Nothing for a single device.
BytesPerSecond bisection_bandwidth(const Graph& graph);

}  // namespace fourfold
