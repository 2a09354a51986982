#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "topology/shapes/shape.hpp"
#include "topology/tiers.hpp"

// Two or three levels of switches (Al-Fares et al. 2008, A Scalable, Commodity Data Center Network
// Architecture, sec. 2; a folded Clos network). A leaf has leaf_ports / oversubscription uplinks,
// one to each spine, each as fast as a port. With three levels such a tree is a pod, whose spines
// are called aggregation: number j of every pod has pod_leaves / core_oversubscription uplinks, one
// to each core of group j.
//
// One leaf needs no spine and one pod no core. The last leaf and the last pod may be part empty;
// their uplinks are not.

namespace fourfold {
namespace {

constexpr std::string_view picture = R"(
    spine0      spine1
     |    \    /    |
     |     \  /     |
     |     /  \     |
    leaf0         leaf1
   / | | \       / | | \          leaf_ports: 4, oversubscription: 2
  e0 e1 e2 e3   e4 e5 e6 e7

    core0  core1    core2  core3
        \   |         |   /       and to each other pod
    aggregation0  aggregation1
        |    \      /    |
        |      \  /      |
        |      /  \      |
       leaf0          leaf1       levels: 3, leaf_ports: 2, pod_leaves: 2
       /  \           /  \
      e0   e1        e2   e3)";

constexpr std::array<ShapeParameter, 5> takes{{
    {"levels", "2: leaf and spine; 3: leaf, aggregation and core", &ShapeParameters::levels},
    {"leaf_ports", "endpoints of a leaf", &ShapeParameters::leaf_ports},
    {"oversubscription", "endpoints of a leaf per uplink", &ShapeParameters::oversubscription},
    {"pod_leaves", "3 levels: leaves of a pod", &ShapeParameters::pod_leaves},
    {"core_oversubscription", "3 levels: leaves of a pod per uplink of an aggregation switch",
     &ShapeParameters::core_oversubscription},
}};

Result<void> check_levels(const ShapeParameters& parameters) {
    if (parameters.levels == 3) return {};
    if (parameters.levels != 2) {
        return problem("levels",
                       fmt::format("a fat tree has 2 or 3 levels, not {}", parameters.levels));
    }
    for (const ShapeParameter& each : takes) {
        const bool is_of_pods = each.name == "pod_leaves" || each.name == "core_oversubscription";
        if (!is_of_pods || !each.is_set(parameters)) continue;
        return problem(
            std::string(each.name),
            fmt::format("'{}' is for 3 levels; add 'levels: 3' or remove it", each.name));
    }
    return {};
}

Result<void> check_parameters(const ShapeParameters& parameters) {
    const auto& p = parameters;
    if (auto fine = check_levels(p); !fine) return fine;
    if (auto fine = check_ports("leaf_ports", "leaf has at least one port", p.leaf_ports); !fine) {
        return fine;
    }
    if (auto fine = check_ports("pod_leaves", "pod has at least one leaf", p.pod_leaves); !fine) {
        return fine;
    }
    if (auto fine = check_oversubscription("oversubscription", p.oversubscription); !fine) {
        return fine;
    }
    return check_oversubscription("core_oversubscription", p.core_oversubscription);
}

void join_pods(std::span<const VertexId> leaves, std::size_t leaf_uplinks, const LinkSpec& spec,
               const ShapeParameters& parameters, std::string_view prefix, GraphDraft& draft) {
    const auto pod_leaves =
        std::min(leaves.size(), static_cast<std::size_t>(parameters.pod_leaves));
    std::vector<std::vector<VertexId>> pods;
    for (std::size_t first = 0; first < leaves.size(); first += pod_leaves) {
        const auto own = leaves.subspan(first, std::min(pod_leaves, leaves.size() - first));
        const std::string name = fmt::format("{}pod{}.aggregation", prefix, pods.size());
        pods.push_back(add_switches(leaf_uplinks, name, draft));
        join_all(own, pods.back(), spec, draft);
    }
    if (pods.size() == 1) return;
    const std::size_t group = uplinks(pod_leaves, parameters.core_oversubscription);
    const auto cores = add_switches(leaf_uplinks * group, fmt::format("{}core", prefix), draft);
    for (const auto& pod : pods) {
        for (std::size_t j = 0; j < leaf_uplinks; ++j) {
            join_all({&pod[j], 1}, std::span(cores).subspan(j * group, group), spec, draft);
        }
    }
}

Result<void> build(std::span<const VertexId> endpoints, const LinkSpec& spec,
                   const ShapeParameters& parameters, std::string_view prefix, GraphDraft& draft) {
    if (auto fine = check_parameters(parameters); !fine) return fine;
    const auto ports = static_cast<std::size_t>(parameters.leaf_ports);
    const std::size_t leaf_count = (endpoints.size() - 1) / ports + 1;
    const auto leaves = add_switches(leaf_count, fmt::format("{}leaf", prefix), draft);
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
        draft.add_cable(endpoints[i], leaves[i / ports], spec);
    }
    if (leaf_count == 1) return {};
    const std::size_t leaf_uplinks = uplinks(ports, parameters.oversubscription);
    if (parameters.levels == 3) {
        join_pods(leaves, leaf_uplinks, spec, parameters, prefix, draft);
    } else {
        const auto spines = add_switches(leaf_uplinks, fmt::format("{}spine", prefix), draft);
        join_all(leaves, spines, spec, draft);
    }
    return {};
}

/// A leaf, and a pod.
Blocks blocks(std::uint32_t endpoints, std::uint32_t /*nodes*/, const ShapeParameters& parameters) {
    const std::int64_t leaf = std::min<std::int64_t>(endpoints, parameters.leaf_ports);
    std::vector<std::uint32_t> sizes{static_cast<std::uint32_t>(leaf)};
    if (parameters.levels == 3 && leaf < endpoints) {
        const std::int64_t leaves = std::min<std::int64_t>(endpoints, parameters.pod_leaves);
        const std::int64_t pod = std::min<std::int64_t>(endpoints, leaf * leaves);
        sizes.push_back(static_cast<std::uint32_t>(pod));
    }
    const bool is_narrow = parameters.oversubscription > 1 || parameters.core_oversubscription > 1;
    return {.sizes = std::move(sizes), .share_uplinks = is_narrow};
}

}  // namespace

extern const Shape fat_tree_shape;
constinit const Shape fat_tree_shape{
    .name = "fat_tree",
    .summary = "leaf switches joined by spine switches, or by pods and cores",
    .picture = picture,
    .parameters = takes,
    .direct = false,
    .blocks = blocks,
    .build = build};

}  // namespace fourfold
