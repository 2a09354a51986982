#include "workloads/placement.hpp"

#include <algorithm>

namespace fourfold {

DeviceId Placement::device(std::int64_t rank) const {
    return devices_.empty() ? DeviceId{static_cast<std::uint32_t>(rank)}
                            : devices_[static_cast<std::size_t>(rank)];
}

DeviceId Placement::device(const Seat& seat) const {
    Seat place = seat;
    std::int64_t rank = 0, stride = 1;
    for (const SplitAxis axis : split_.order) {
        rank += place[axis] * stride;
        stride *= split_.size(axis);
    }
    return device(rank);
}

Seat Placement::seat(DeviceId device) const {
    Seat seat;
    std::int64_t rest = device.value;
    if (!devices_.empty()) rest = std::ranges::lower_bound(devices_, device) - devices_.begin();
    for (const SplitAxis axis : split_.order) {
        seat[axis] = rest % split_.size(axis);
        rest /= split_.size(axis);
    }
    return seat;
}

std::vector<DeviceId> Placement::group(const Seat& seat,
                                       std::initializer_list<SplitAxis> axes) const {
    std::vector<Seat> seats{seat};
    for (const SplitAxis axis : axes) {
        std::vector<Seat> more;
        for (Seat each : seats) {
            for (std::int64_t place = 0; place < split_.size(axis); ++place) {
                each[axis] = place;
                more.push_back(each);
            }
        }
        seats = std::move(more);
    }
    std::vector<DeviceId> members;
    for (const Seat& each : seats) members.push_back(device(each));
    std::sort(members.begin(), members.end());
    return members;
}

}  // namespace fourfold
