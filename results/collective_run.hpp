#pragma once

// One collective on one network of ranks: what it takes, against its closed form and its bound.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulate.hpp"
#include "topology/cluster.hpp"
#include "workloads/collectives/collective.hpp"

namespace fourfold {

/// Ranks are nodes of one device each, joined by `network`: on a switch each has one link pair, so
/// a message pays the link's latency twice. With `nodes`, `network` joins the ranks of all nodes.
struct CollectiveQuestion {
    CollectiveKind kind = CollectiveKind::all_reduce;
    const Algorithm* algorithm = nullptr;  // nullptr: the one that a training step would choose
    std::uint32_t ranks = 1;
    Bytes bytes{};  // as nccl-tests counts them, see collective.hpp
    std::uint32_t root = 0;
    Fabric network;
    struct Nodes {
        std::uint32_t ranks = 1;  // in each node
        Fabric network;           // inside a node, beside the one that joins all
    };
    std::optional<Nodes> nodes{};
    LinkModel links = LinkModel::flows;
    Bytes quantum{};  // see SimulateOptions
    Routing routing{};
    std::vector<Duration> start;  // how late each rank is; empty: all are there at 0
    bool audit = false;
};

/// A question made ready for the simulator.
struct CollectiveProgram {
    Graph graph;
    Program
        program;  // one part per rank, in rank order, each after a compute task if ranks are late
    const Algorithm* algorithm = nullptr;
    CollectiveCall call;
    /// One link pair per rank, the same for all, if that is what the call's messages find.
    std::optional<EqualLinks> equal_links;
    /// At least as good as what the network gives: all ports of a rank, the least latency.
    EqualLinks best_links;
};

struct CollectiveRun {
    std::string_view algorithm;
    Duration time{};  // until the last rank has finished
    /// Where the network is what the closed form assumes, and all ranks start at 0.
    std::optional<Duration> closed_form;
    Duration bound{};  // no algorithm is faster
    std::uint64_t messages = 0;
    Bytes wire_bytes_per_rank{};      // sent, by the rank that sends most
    double algorithm_bandwidth = 0;   // B/s: bytes / time
    double bus_bandwidth = 0;         // B/s: comparable over algorithms and ranks
    std::vector<Time> finish;         // of each rank
    std::vector<std::string> faults;  // found by the audit, if asked for
    // Of the simulator
    std::uint64_t events = 0;
    double seconds = 0;                  // CPU time of the process for this run
    std::int64_t peak_memory_bytes = 0;  // of the process so far
};

/// A problem's `where` is "ranks", "per-node", "root", "algorithm" or a parameter of the network
/// (inside nodes: "node.latency").
Result<CollectiveProgram> prepare_collective(const CollectiveQuestion& question);
Result<CollectiveRun> run_collective(const CollectiveQuestion& question);

}  // namespace fourfold
