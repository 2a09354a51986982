#pragma once

// Which device does what: ranks are laid out on devices in their order, the split's innermost axis
// first, so that neighbours on it are neighbouring devices.

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "topology/graph.hpp"
#include "workloads/split.hpp"

namespace fourfold {

/// A device's place on each axis.
struct Seat {
    std::int64_t tensor = 0, context = 0, pipeline = 0, data = 0;

    std::int64_t& operator[](SplitAxis axis) { return on_axis(*this, axis); }
};

class Placement {
  public:
    /// `devices`: of each rank, ascending; empty: as many as it takes, from the first one on.
    explicit Placement(const Split& split, std::vector<DeviceId> devices = {})
        : split_(split), devices_(std::move(devices)) {}

    /// tensor * context * pipeline * data: devices beyond these have no work.
    [[nodiscard]] std::int64_t devices() const {
        return split_.tensor * split_.pipeline * split_.replicas();
    }
    [[nodiscard]] DeviceId device(std::int64_t rank) const;
    [[nodiscard]] DeviceId device(const Seat& seat) const;
    /// Requires: the device has work.
    [[nodiscard]] Seat seat(DeviceId device) const;
    /// The devices that differ from `seat` on the given axes only, in the order of the layout.
    [[nodiscard]] std::vector<DeviceId> group(const Seat& seat,
                                              std::initializer_list<SplitAxis> axes) const;

  private:
    Split split_;
    std::vector<DeviceId> devices_;
};

}  // namespace fourfold
