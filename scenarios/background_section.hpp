#pragma once

// The `background` list of a scenario: what others send over the same links.

#include <string>
#include <vector>

#include "scenarios/document.hpp"
#include "scenarios/fields.hpp"
#include "topology/graph.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

/// A flow between vertices that are not looked up yet.
struct NamedFlow {
    std::string from, to;
    Place from_place, to_place;
    BackgroundFlow flow;
};

/// Reads the key `background` of a scenario.
std::vector<NamedFlow> read_background(Fields& scenario);

/// Finds the devices that flows lead from and to. Reports names that are none.
std::vector<BackgroundFlow> look_up(const std::vector<NamedFlow>& flows, const Graph& graph,
                                    Report& report);

}  // namespace fourfold
