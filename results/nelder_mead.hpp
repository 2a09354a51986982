#pragma once

// The minimum of a function of a few numbers that has kinks and no derivative.

#include <functional>
#include <span>
#include <vector>

namespace fourfold {

using Objective = std::function<double(std::span<const double>)>;

struct Minimum {
    std::vector<double> at;
    double value = 0;
};

/// A local minimum near `start`, the same for the same arguments. `steps` are the edges of the
/// first simplex. Requires: as many steps as numbers, at least one, none zero; finite values of the
/// objective. Cost: some hundred evaluations per number.
Minimum nelder_mead(const Objective& objective, std::vector<double> start,
                    std::span<const double> steps);

}  // namespace fourfold
