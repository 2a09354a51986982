#pragma once

// The link graph: vertices (devices and switches) and directed links with bandwidth and latency.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/ids.hpp"
#include "topology/result.hpp"
#include "topology/units.hpp"

namespace fourfold {

using VertexId = Id<struct VertexTag>;
using LinkId = Id<struct LinkTag>;
/// Devices are numbered on their own, in the order in which they were added: device i is rank i's
/// default seat.
using DeviceId = Id<struct DeviceTag>;

/// What one direction of a cable offers. `efficiency` is what a real transport reaches of the data
/// sheet (0 < efficiency <= 1).
struct LinkSpec {
    BytesPerSecond bandwidth{};
    Duration latency{};
    double efficiency = 1.0;
    friend bool operator==(const LinkSpec&, const LinkSpec&) = default;
};

struct Link {
    VertexId from, to;
    LinkSpec spec;
    BytesPerSecond rate{};  // bandwidth * efficiency, rounded down: what the simulator uses
};

struct Vertex {
    std::string name;  // "node3.device0", "leaf0"
    bool is_device = false;
    DeviceId device{};       // meaningful for devices only
    std::uint32_t node = 0;  // devices of one node share it; switches: 0
};

/// Which of several equally short routes traffic takes (topology/routes.hpp).
struct Routing {
    enum class Kind : std::uint8_t { balanced, ecmp };
    Kind kind = Kind::balanced;
    std::uint64_t seed = 0;  // of ecmp's hash
    friend bool operator==(const Routing&, const Routing&) = default;
};

/// How alike the devices are.
struct Blocks {
    std::vector<std::uint32_t> sizes;  // see Graph::blocks
    std::uint32_t rails = 1;           // see Graph::rails
    bool share_uplinks = false;        // see Graph::shares_uplinks
};

/// A graph being described. Names must be unique; `seal` says which is not.
struct GraphDraft {
    std::vector<Vertex> vertices;
    std::vector<Link> links;
    std::uint32_t devices = 0;
    Blocks blocks;
    std::vector<DeviceId> odd;  // see Graph::odd
    Routing routing;

    VertexId add_device(std::string name, std::uint32_t node);
    VertexId add_switch(std::string name);
    void add_link(VertexId from, VertexId to, const LinkSpec& spec);
    /// Both directions.
    void add_cable(VertexId a, VertexId b, const LinkSpec& spec);
};

struct Adjacency;

class Graph {
  public:
    Graph();
    Graph(Graph&&) noexcept;
    Graph& operator=(Graph&&) noexcept;
    ~Graph();

    [[nodiscard]] std::span<const Vertex> vertices() const { return vertices_; }
    [[nodiscard]] std::span<const Link> links() const { return links_; }
    [[nodiscard]] const Vertex& operator[](VertexId id) const { return vertices_[id.value]; }
    [[nodiscard]] const Link& operator[](LinkId id) const { return links_[id.value]; }
    /// The vertex of each device, by DeviceId.
    [[nodiscard]] std::span<const VertexId> devices() const { return devices_; }
    [[nodiscard]] std::uint32_t node_of(DeviceId device) const {
        return vertices_[devices_[device.value].value].node;
    }
    /// Sizes of aligned blocks of devices, inner ones first, such that any two pairs of devices in
    /// the same block, or in different blocks, of each size are joined alike. What leaves a block
    /// through switches is spread evenly over the links above it. Empty: nothing of the kind is
    /// known, or routing by hash breaks it.
    [[nodiscard]] std::span<const std::uint32_t> blocks() const { return blocks_.sizes; }
    /// Device i is on rail i mod `rails`, and pairs are joined alike only if both are on one rail
    /// or neither is. Nodes, which are the smallest blocks then, have a device on each.
    [[nodiscard]] std::uint32_t rails() const { return blocks_.rails; }
    /// The devices of a block of this size that are on one rail, numbered in order.
    [[nodiscard]] std::uint32_t section_of(DeviceId device, std::uint32_t size) const {
        return device.value / size * rails() + device.value % rails();
    }
    /// Whether links between switches can hold up traffic, not only a device's own ports.
    [[nodiscard]] bool shares_uplinks() const { return blocks_.share_uplinks; }
    /// The devices to which that does not apply: one of their own links has a speed of its own. In
    /// order.
    [[nodiscard]] std::span<const DeviceId> odd() const { return odd_; }
    [[nodiscard]] const Routing& routing() const { return routing_; }
    /// Which of the links out of its first vertex a link is, and which of those into its last one.
    /// Cost: how many there are.
    [[nodiscard]] std::uint32_t place_at_start(LinkId link) const;
    [[nodiscard]] std::uint32_t place_at_end(LinkId link) const;
    /// Cost: all vertices. A problem's text offers the closest name; its `where` is empty.
    [[nodiscard]] Result<VertexId> find(std::string_view name) const;
    /// "leaf0 -> node3.device0"
    [[nodiscard]] std::string name(LinkId link) const;
    /// For Boost.Graph's algorithms (topology/adjacency.hpp).
    [[nodiscard]] const Adjacency& adjacency() const { return *adjacency_; }

  private:
    friend Result<Graph> seal(GraphDraft draft);
    std::vector<Vertex> vertices_;
    std::vector<Link> links_;
    std::vector<VertexId> devices_;
    Blocks blocks_;
    std::vector<DeviceId> odd_;
    Routing routing_;
    std::unique_ptr<const Adjacency> adjacency_;
};

/// A copy whose links run at `within` or `across` times their rate: links that end at devices of
/// one node only (its own switch included), and all others.
Graph with_rates(const Graph& graph, double within, double across);

/// The parameter of `spec` that cannot be ("bandwidth", "latency" or "efficiency"), if there is
/// one.
Result<void> check(const LinkSpec& spec);

/// Checks that there is a device, that names are unique, that no link is a loop or fails `check`,
/// that latencies can be summed along any path, and that every device reaches every other. A
/// problem's `where` is "vertices" or "links".
Result<Graph> seal(GraphDraft draft);

}  // namespace fourfold
