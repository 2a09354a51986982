#pragma once

// What both simulators are given, and what they answer: when each rank or flow was done, in
// seconds.

#include <cstdint>
#include <string>
#include <vector>

#include "topology/graph.hpp"
#include "topology/units.hpp"

namespace fourfold {

/// An all-reduce by a ring over all ports of a switch, message by message.
struct RingCase {
    std::uint32_t ranks = 1'024;
    Bytes bytes = 64_MiB;
    LinkSpec link{.bandwidth = 25_GBps, .latency = 5_us};

    [[nodiscard]] std::uint32_t rounds() const { return 2 * (ranks - 1); }
    [[nodiscard]] Bytes message() const { return ceil_div(bytes, ranks); }
    /// Two links a message, cut-through.
    [[nodiscard]] Duration closed_form() const {
        return rounds() * (message() / link.bandwidth + 2 * link.latency);
    }
};

struct Flow {
    std::uint32_t from, to;
    Bytes bytes;
};

/// Flows between hosts below leaf switches, which have one uplink each to a core. Flow i starts
/// when flow i - `in_flight` has ended, the first ones at 0. Without latency.
struct TreeCase {
    std::uint32_t hosts = 256, leaf_hosts = 16;
    LinkSpec port{.bandwidth = 25_GBps}, uplink{.bandwidth = 100_GBps};
    std::vector<Flow> flows;
    std::uint32_t in_flight = 0;
};

std::vector<double> run_in_fourfold(const RingCase& ring);
std::vector<double> run_in_fourfold(const TreeCase& tree);
/// Once per process: SimGrid's engine is a singleton.
std::vector<double> run_in_simgrid(const RingCase& ring);
std::vector<double> run_in_simgrid(const TreeCase& tree);
std::string simgrid_version();

}  // namespace fourfold
