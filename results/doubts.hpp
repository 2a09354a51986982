#pragma once

// What a prediction rests on that few measurements or none support.

#include <string>
#include <vector>

#include "topology/graph.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

struct Doubt {
    std::string text;   // for people
    double spread = 0;  // what it adds to the spread of ln(step time); 0: counted elsewhere
};

std::vector<Doubt> doubts_of(const TrainingStep& step, const Graph& graph);

}  // namespace fourfold
