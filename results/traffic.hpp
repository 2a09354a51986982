#pragma once

// The traffic signature of a step: per axis and operation, what one device sends, whether it waits
// for it, what it could hide behind, and the link that it uses. Counted from the program and the
// timeline, for the busiest device of each row.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/timeline.hpp"
#include "topology/graph.hpp"
#include "workloads/lower.hpp"

namespace fourfold {

struct TrafficRow {
    Axis axis{};
    std::string operation;         // "all_reduce", "send"
    std::uint64_t operations = 0;  // per step; of point-to-point messages the sends
    Bytes bytes{};                 // of all operations: buffers, as their kind defines it
    Bytes bytes_min{}, bytes_max{};
    Bytes wire_bytes{};  // sent by the device per step
    bool point_to_point = false;
    bool blocking = false;  // the device's next forward or backward kernel waits for it
    Duration window{};      // compute that runs while any is issued and not yet needed
    Duration transfer{};    // time in which its bytes move, of all operations
    DeviceId device{};  // the busiest, or the first of those that are like it (workloads/fold.hpp)
    LinkId link{};      // the device's link that carries most of it
    double link_share = 0;  // of what that link carries in the step

    [[nodiscard]] double bytes_per_operation() const {
        return operations == 0 ? 0
                               : static_cast<double>(bytes.value) / static_cast<double>(operations);
    }
};

/// Adds what the collectives in chains (workloads/chain.hpp) carry to the links of a timeline of
/// this program.
void add_chain_traffic(const Lowered& lowered, Timeline& timeline);

/// By axis, then operation.
std::vector<TrafficRow> traffic(const Graph& graph, const Lowered& lowered,
                                const Timeline& timeline);

}  // namespace fourfold
