#pragma once

// An independent check of a timeline. Shares no code with simulate(): it re-derives, from the
// program and the timeline alone, that dependencies, durations, link capacities and byte counts
// hold.

#include <string>
#include <vector>

#include "sim/simulate.hpp"

namespace fourfold {

/// What does not hold, a sentence each, at most 20; empty: all is well. With the fluid model the
/// timeline must have been made with `record_rates`.
std::vector<std::string> audit(const Graph& graph, const Program& program, const Timeline& timeline,
                               const SimulateOptions& options);

}  // namespace fourfold
