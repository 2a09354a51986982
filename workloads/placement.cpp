#include "workloads/placement.hpp"

#include <algorithm>

namespace fourfold {
namespace {

std::int64_t& on_axis(Seat& seat, SplitAxis axis) {
    switch (axis) {
        case SplitAxis::tensor:
            return seat.tensor;
        case SplitAxis::pipeline:
            return seat.pipeline;
        case SplitAxis::data:
            return seat.data;
    }
    return seat.data;
}

}  // namespace

std::int64_t Placement::size(SplitAxis axis) const {
    switch (axis) {
        case SplitAxis::tensor:
            return split_.tensor;
        case SplitAxis::pipeline:
            return split_.pipeline;
        case SplitAxis::data:
            return split_.data;
    }
    return 1;
}

DeviceId Placement::device(const Seat& seat) const {
    Seat place = seat;
    std::int64_t device = 0, stride = 1;
    for (const SplitAxis axis : split_.order) {
        device += on_axis(place, axis) * stride;
        stride *= size(axis);
    }
    return {static_cast<std::uint32_t>(device)};
}

Seat Placement::seat(DeviceId device) const {
    Seat seat;
    std::int64_t rest = device.value;
    for (const SplitAxis axis : split_.order) {
        on_axis(seat, axis) = rest % size(axis);
        rest /= size(axis);
    }
    return seat;
}

std::vector<DeviceId> Placement::group(const Seat& seat, bool tensor, bool pipeline,
                                       bool data) const {
    std::vector<DeviceId> members;
    const auto range = [](bool varies, std::int64_t own, std::int64_t count) {
        return std::pair{varies ? 0 : own, varies ? count : own + 1};
    };
    const auto [t0, t1] = range(tensor, seat.tensor, split_.tensor);
    const auto [p0, p1] = range(pipeline, seat.pipeline, split_.pipeline);
    const auto [d0, d1] = range(data, seat.data, split_.data);
    for (std::int64_t t = t0; t < t1; ++t) {
        for (std::int64_t p = p0; p < p1; ++p) {
            for (std::int64_t d = d0; d < d1; ++d) members.push_back(device({t, p, d}));
        }
    }
    std::sort(members.begin(), members.end());
    return members;
}

}  // namespace fourfold
