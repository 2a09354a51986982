#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "topology/shapes/shape.hpp"

// Two levels of switches (Al-Fares et al. 2008, A Scalable, Commodity Data Center Network
// Architecture, sec. 2; a folded Clos network). A leaf has leaf_ports / oversubscription uplinks,
// one to each spine, each as fast as a port.
//
// Oversubscription leaves out uplinks and never slows them, so that a lone message runs at the
// speed of its port. One leaf needs no spine. The last leaf may be part empty; its uplinks are not.

namespace fourfold {
namespace {

constexpr std::string_view picture = R"(
    spine0      spine1
     |    \    /    |
     |     \  /     |
     |     /  \     |
    leaf0         leaf1
   / | | \       / | | \     leaf_ports: 4, oversubscription: 2
  e0 e1 e2 e3   e4 e5 e6 e7)";

constexpr std::array<ShapeParameter, 2> takes{{
    {"leaf_ports", "endpoints of a leaf", &ShapeParameters::leaf_ports},
    {"oversubscription", "endpoints of a leaf per uplink", &ShapeParameters::oversubscription},
}};

Result<void> check_parameters(const ShapeParameters& parameters) {
    if (parameters.leaf_ports < 1) {
        return problem("leaf_ports",
                       fmt::format("a leaf has at least one port, not {}", parameters.leaf_ports));
    }
    const double over = parameters.oversubscription;
    if (!(std::isfinite(over) && over >= 1)) {
        return problem("oversubscription",
                       fmt::format("oversubscription {} is not a number of at least 1", over));
    }
    return {};
}

/// Ports / oversubscription, rounded up, but not because 33 / 1.1 is a little more than 30.
std::size_t uplinks_of(std::size_t ports, double oversubscription) {
    const double exact = static_cast<double>(ports) / oversubscription;
    return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(exact * (1 - 1e-12))));
}

std::vector<VertexId> add_switches(std::size_t count, std::string_view prefix,
                                   std::string_view name, GraphDraft& draft) {
    std::vector<VertexId> switches;
    for (std::size_t i = 0; i < count; ++i) {
        switches.push_back(draft.add_switch(fmt::format("{}{}{}", prefix, name, i)));
    }
    return switches;
}

Result<void> build(std::span<const VertexId> endpoints, const LinkSpec& spec,
                   const ShapeParameters& parameters, std::string_view prefix, GraphDraft& draft) {
    if (auto fine = check_parameters(parameters); !fine) return fine;
    const auto ports = static_cast<std::size_t>(parameters.leaf_ports);
    const std::size_t leaf_count = (endpoints.size() - 1) / ports + 1;
    const std::size_t spine_count =
        leaf_count == 1 ? 0 : uplinks_of(ports, parameters.oversubscription);

    const auto leaves = add_switches(leaf_count, prefix, "leaf", draft);
    const auto spines = add_switches(spine_count, prefix, "spine", draft);
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
        draft.add_cable(endpoints[i], leaves[i / ports], spec);
    }
    for (const VertexId leaf : leaves) {
        for (const VertexId spine : spines) draft.add_cable(leaf, spine, spec);
    }
    return {};
}

/// A leaf, where the spines can carry all that the ports can.
std::vector<std::uint32_t> blocks(std::uint32_t endpoints, const ShapeParameters& parameters) {
    if (parameters.oversubscription > 1) return {};
    const auto leaf = std::min<std::int64_t>(endpoints, parameters.leaf_ports);
    return {static_cast<std::uint32_t>(leaf)};
}

}  // namespace

extern const Shape fat_tree_shape;
constinit const Shape fat_tree_shape{.name = "fat_tree",
                                     .summary = "leaf switches joined by spine switches",
                                     .picture = picture,
                                     .parameters = takes,
                                     .direct = false,
                                     .blocks = blocks,
                                     .build = build};

}  // namespace fourfold
