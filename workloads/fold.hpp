#pragma once

// Devices that behave alike are simulated once. Along the axes tensor, context and data all ranks
// do the same work; where the network treats them alike too, one of each class of coordinates
// stands for the others, and a step has as many devices to simulate as it has pipeline ranks, times
// the classes of the other axes. Nothing odd: one class each. One slow device: its own coordinate
// on each axis, and those of its neighbours in the blocks that it lies in. A collective that loads
// its members unevenly, as a tree does: as many classes as it has loads.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "topology/graph.hpp"
#include "workloads/placement.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

/// By axis: of each coordinate a number, the same for those that nothing is known to tell apart.
/// Empty: for all.
using Roles = std::array<std::vector<std::uint32_t>, 4>;

struct Fold {
    std::vector<DeviceId> devices;     // to simulate, in order
    std::vector<std::int64_t> counts;  // how many each stands for, itself included
    Placement placement;
    std::array<std::vector<std::int64_t>, 4> stands_for;  // by axis: for each coordinate another
    /// Of each size in Graph::blocks: the sections (Graph::section_of) that hold a device to
    /// simulate, and how many each stands for, itself included.
    std::vector<std::map<std::uint32_t, std::int64_t>> sections;
    std::uint32_t rails = 1;  // sections of a block

    /// The one that stands for a device. Requires: the device has work.
    [[nodiscard]] DeviceId representative(DeviceId device) const;
    /// How many devices it stands for; 0: it is not simulated.
    [[nodiscard]] std::int64_t count(DeviceId device) const;
    /// The same of sections of blocks of a size; 0: none of its devices is simulated.
    [[nodiscard]] std::int64_t count(std::size_t level, std::uint32_t section) const;
    /// Whether any device of a block of a size is simulated.
    [[nodiscard]] bool holds(std::size_t level, std::uint32_t block) const;
};

/// Classes of devices that behave alike in the fluid link model. Nothing where the graph promises
/// too little (with ecmp it promises nothing), where others are on the links, where groups of no
/// axis lie alike in its blocks, and where jitter makes all devices differ.
std::optional<Fold> fold_of(const TrainingStep& step, const Graph& graph, const Roles& roles = {});

/// About how many tasks the step makes.
double tasks_of(const TrainingStep& step, const std::optional<Fold>& fold);

/// Whether as many tasks as the step makes can be simulated. A problem's `where` is "batch.global".
Result<void> check_tasks(const TrainingStep& step, const std::optional<Fold>& fold);

}  // namespace fourfold
