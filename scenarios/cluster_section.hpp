#pragma once

// The `cluster` mapping of a scenario: the device and how devices are joined.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/catalog.hpp"
#include "scenarios/document.hpp"
#include "sim/link_changes.hpp"
#include "topology/cluster.hpp"
#include "topology/device.hpp"
#include "topology/graph.hpp"
#include "workloads/training_step.hpp"

namespace fourfold {

struct ClusterSection {
    Device device;
    std::optional<ClusterShape> shape;  // nodes of devices; or:
    std::optional<GraphDraft> graph;    // a list of vertices and links
    TransportCosts node, fabric;        // ideal for a list
    std::uint32_t devices = 0;          // 0: not known, because something is wrong
    bool sound = false;                 // nothing in the section was wrong
};

/// Device, devices_per_node, node and fabric, as a catalog has them.
void read_cluster_kind(Fields& fields, const Catalog& catalog, ClusterKind& into);

/// Reads the key `cluster` of a scenario.
ClusterSection read_cluster(Fields& scenario, const Catalog& catalog);

/// What `perturb` does to a link: factors on what it offers.
struct SlowLink {
    std::string from, to;
    double bandwidth = 1, latency = 1;  // no bandwidth: it fails
    std::optional<Duration> at;         // from then on, else from the start
    Place place, from_place, to_place;  // for what is wrong with it
};

struct PerturbedGraph {
    Graph graph;
    std::vector<LinkChange> changes;  // while the step runs
};

/// Builds the cluster, slows links, leaves out those that fail and seals the graph. Requires:
/// `cluster.sound`. Problems are reported at the keys of `scenario`.
std::optional<PerturbedGraph> build_graph(const ClusterSection& cluster, const Routing& routing,
                                          const std::vector<SlowLink>& slow_links,
                                          const YamlNode& scenario, Report& report);

}  // namespace fourfold
