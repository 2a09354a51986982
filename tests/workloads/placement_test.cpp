#include "workloads/placement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace fourfold {
namespace {

using enum SplitAxis;

constexpr std::array<std::array<SplitAxis, 3>, 6> all_orders{{{tensor, data, pipeline},
                                                              {tensor, pipeline, data},
                                                              {data, tensor, pipeline},
                                                              {data, pipeline, tensor},
                                                              {pipeline, tensor, data},
                                                              {pipeline, data, tensor}}};

Split split_of(std::int64_t t, std::int64_t p, std::int64_t d,
               const std::array<SplitAxis, 3>& order) {
    Split split;
    split.tensor = t;
    split.pipeline = p;
    split.data = d;
    split.order = {order[0], order[1], order[2], context};
    return split;
}

std::vector<std::uint32_t> numbers(const std::vector<DeviceId>& devices) {
    std::vector<std::uint32_t> all;
    for (const DeviceId device : devices) all.push_back(device.value);
    return all;
}

using Numbers = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("ranks sit on the devices that are named, in their order") {
    const Split split = split_of(2, 2, 1, {tensor, pipeline, data});
    const Placement placement(split, {{3}, {4}, {8}, {9}});
    CHECK(placement.devices() == 4);
    CHECK(placement.device(2) == DeviceId{8});
    CHECK(placement.device(Seat{.tensor = 1, .pipeline = 1}) == DeviceId{9});
    CHECK(placement.seat({8}).tensor == 0);
    CHECK(placement.seat({8}).pipeline == 1);
    CHECK(placement.group({}, {pipeline}) == std::vector<DeviceId>{{3}, {8}});
}

TEST_CASE("the innermost axis has neighbouring devices") {
    // tensor 2, data 3, pipeline 2, innermost first: device = t + 2 d + 6 p.
    const Placement placement(split_of(2, 2, 3, {tensor, data, pipeline}));
    CHECK(placement.devices() == 12);
    CHECK(placement.device({.tensor = 1, .pipeline = 1, .data = 2}).value == 1 + 4 + 6);
    const Seat seat = placement.seat({9});  // 9 = 1 + 2 * 1 + 6 * 1
    CHECK(seat.tensor == 1);
    CHECK(seat.data == 1);
    CHECK(seat.pipeline == 1);

    CHECK(numbers(placement.group(seat, {tensor})) == Numbers{8, 9});
    CHECK(numbers(placement.group(seat, {data})) == Numbers{7, 9, 11});
    CHECK(numbers(placement.group(seat, {pipeline})) == Numbers{3, 9});
    CHECK(numbers(placement.group(seat, {tensor, pipeline})) == Numbers{2, 3, 8, 9});
    CHECK(placement.group(seat, {tensor, pipeline, data}).size() == 12);
    CHECK(numbers(placement.group(seat, {})) == Numbers{9});
}

TEST_CASE("the order decides which axis gets the near devices") {
    // data 3 innermost, then pipeline 2, then tensor 2: device = d + 3 p + 6 t.
    const Placement placement(split_of(2, 2, 3, {data, pipeline, tensor}));
    const Seat first{};
    CHECK(numbers(placement.group(first, {data})) == Numbers{0, 1, 2});
    CHECK(numbers(placement.group(first, {pipeline})) == Numbers{0, 3});
    CHECK(numbers(placement.group(first, {tensor})) == Numbers{0, 6});
}

TEST_CASE("context ranks of a group lie between the tensor group and the data group by default") {
    Split split = split_of(2, 2, 2, {tensor, data, pipeline});
    split.order = Split{}.order;
    split.context = 3;
    const Placement placement(split);  // device = t + 2 c + 6 d + 12 p
    CHECK(placement.devices() == 24);
    const Seat seat = placement.seat({9});  // 1 + 2 * 1 + 6 * 1
    CHECK(seat.context == 1);
    CHECK(numbers(placement.group(seat, {context})) == Numbers{7, 9, 11});
    CHECK(numbers(placement.group(seat, {context, data})) == Numbers{1, 3, 5, 7, 9, 11});
}

TEST_CASE("seats and devices are each other's inverse in every order") {
    for (const auto& order : all_orders) {
        const Placement placement(split_of(2, 3, 4, order));
        for (const DeviceId device : ids<DeviceId>(24)) {
            CHECK(placement.device(placement.seat(device)) == device);
        }
    }
}

// Every device is in one group of `size`, its own.
void check_partition(const Placement& placement, std::initializer_list<SplitAxis> axes,
                     std::size_t size) {
    std::set<Numbers> groups;
    for (const DeviceId device : ids<DeviceId>(24)) {
        const std::vector<DeviceId> group = placement.group(placement.seat(device), axes);
        CHECK(group.size() == size);
        CHECK(std::is_sorted(group.begin(), group.end()));
        CHECK(std::find(group.begin(), group.end(), device) != group.end());
        groups.insert(numbers(group));
    }
    CHECK(groups.size() == 24 / size);
}

TEST_CASE("the groups of an axis part the devices in every order") {
    for (const auto& order : all_orders) {
        const Placement placement(split_of(2, 3, 4, order));
        check_partition(placement, {}, 1);
        check_partition(placement, {tensor}, 2);
        check_partition(placement, {pipeline}, 3);
        check_partition(placement, {data}, 4);
        check_partition(placement, {tensor, pipeline}, 6);
        check_partition(placement, {tensor, data}, 8);
        check_partition(placement, {pipeline, data}, 12);
        check_partition(placement, {tensor, pipeline, data}, 24);
    }
}

}  // namespace fourfold
