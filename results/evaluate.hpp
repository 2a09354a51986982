#pragma once

// One experiment: a training step on a machine, simulated and measured. What run, traffic,
// what-ifs, planners and sweeps all call; knows no YAML.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/measure.hpp"
#include "results/traffic.hpp"
#include "results/uncertainty.hpp"
#include "sim/simulate.hpp"
#include "topology/graph.hpp"
#include "workloads/lower.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

struct Evaluation {
    Lowered lowered;
    Timeline timeline;
    Measures measures;
    std::vector<TrafficRow> traffic;
    std::vector<std::uint64_t> background;  // messages of each flow that arrived in the step
    std::vector<std::string> warnings;
    std::optional<Uncertainty> uncertainty;
    std::size_t tasks = 0;
    std::size_t classes = 0;  // devices that were simulated
    std::uint64_t events = 0;
    double seconds = 0;            // of this process, for lowering and simulating
    std::int64_t peak_memory = 0;  // bytes, of this process so far
};

struct EvaluateOptions {
    LinkModel links = LinkModel::flows;
    std::span<const LinkChange> changes{};  // borrowed
    Bytes quantum{};                        // see SimulateOptions
    bool audit = false;                     // a fault it finds is a problem
    bool fold = true;          // simulate devices that behave alike once (workloads/fold.hpp)
    bool uncertainty = false;  // simulate again with other constants
};

/// Requires: check(step, devices of the graph).
Result<Evaluation> evaluate(const TrainingStep& step, const Graph& graph,
                            const EvaluateOptions& options);

/// Of each of the program's background flows, the messages that arrived before the run's end.
std::vector<std::uint64_t> arrivals(const Program& program, const Timeline& timeline);

/// Processor time and peak memory of this process.
struct Resources {
    double seconds = 0;
    std::int64_t peak_memory = 0;
};
Resources resources();

}  // namespace fourfold
