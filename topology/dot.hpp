#pragma once

#include <ostream>

#include "topology/graph.hpp"

namespace fourfold {

/// In the language of Graphviz: devices are boxes, framed by node; two equal links, there and back,
/// are one line.
void write_dot(std::ostream& out, const Graph& graph);

}  // namespace fourfold
