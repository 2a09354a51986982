#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "topology/shapes/shape.hpp"
#include "topology/tiers.hpp"

// A rail for the first devices of all nodes, one for the second ones, and so on (NVIDIA's
// rail-optimized network). A rail of more than leaf_ports endpoints has several leaves: number i of
// the first leaf_ports nodes is on leaf i, that of the next ones on leaf i + rails.
//
// With spines, which join all leaves, this is a fat tree whose leaves hold other devices. Without
// them rails meet in the nodes only (Wang et al. 2023, How to Build Low-cost Networks for Large
// Language Models): a rail of several leaves has spines of its own.

namespace fourfold {
namespace {

constexpr std::string_view picture = R"(
    spine0      spine1
     |    \    /    |           not there with spine: false
     |     \  /     |
     |     /  \     |
    leaf0         leaf1
    /   \         /   \
   e0    e2      e1    e3       node0: e0 e1, node1: e2 e3)";

constexpr std::array<ShapeParameter, 3> takes{{
    {"spine", "whether spines join the rails", &ShapeParameters::spine},
    {"leaf_ports", "endpoints of a leaf", &ShapeParameters::leaf_ports},
    {"oversubscription", "endpoints of a leaf per uplink", &ShapeParameters::oversubscription},
}};

/// The endpoints of each rail.
std::vector<std::vector<VertexId>> rails_of(std::span<const VertexId> endpoints,
                                            const GraphDraft& draft) {
    const auto node = [&](std::size_t i) { return draft.vertices[endpoints[i].value].node; };
    std::vector<std::vector<VertexId>> rails;
    std::size_t rail = 0;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
        rail = i > 0 && node(i) == node(i - 1) ? rail + 1 : 0;
        if (rail == rails.size()) rails.emplace_back();
        rails[rail].push_back(endpoints[i]);
    }
    return rails;
}

Result<void> check_parameters(const ShapeParameters& parameters) {
    if (auto fine = check_ports("leaf_ports", "leaf has at least one port", parameters.leaf_ports);
        !fine) {
        return fine;
    }
    return check_oversubscription("oversubscription", parameters.oversubscription);
}

Result<void> build(std::span<const VertexId> endpoints, const LinkSpec& spec,
                   const ShapeParameters& parameters, std::string_view prefix, GraphDraft& draft) {
    if (auto fine = check_parameters(parameters); !fine) return fine;
    const auto rails = rails_of(endpoints, draft);
    const std::size_t longest = rails.front().size();
    const auto ports = std::min(longest, static_cast<std::size_t>(parameters.leaf_ports));
    const std::size_t leaf_count = ((longest - 1) / ports + 1) * rails.size();
    const auto leaves = add_switches(leaf_count, fmt::format("{}leaf", prefix), draft);
    const auto join_leaves = [&](std::span<const VertexId> own, const std::string& spine) {
        if (own.size() == 1) return;
        const std::size_t spine_count = uplinks(ports, parameters.oversubscription);
        join_all(own, add_switches(spine_count, spine, draft), spec, draft);
    };
    for (std::size_t rail = 0; rail < rails.size(); ++rail) {
        std::vector<VertexId> own;
        for (std::size_t i = rail; i < leaf_count; i += rails.size()) own.push_back(leaves[i]);
        for (std::size_t i = 0; i < rails[rail].size(); ++i) {
            draft.add_cable(rails[rail][i], own[i / ports], spec);
        }
        if (!parameters.spine) join_leaves(own, fmt::format("{}rail{}.spine", prefix, rail));
    }
    if (parameters.spine) join_leaves(leaves, fmt::format("{}spine", prefix));
    return {};
}

/// The nodes of a leaf. Without spines what goes from rail to rail loads the devices in between.
Blocks blocks(std::uint32_t endpoints, std::uint32_t nodes, const ShapeParameters& parameters) {
    if (!parameters.spine) return {};
    const std::uint32_t rails = endpoints / nodes;
    const auto ports = std::min<std::int64_t>(nodes, parameters.leaf_ports);
    return {.sizes = {static_cast<std::uint32_t>(ports) * rails},
            .rails = rails,
            .share_uplinks = parameters.oversubscription > 1};
}

}  // namespace

extern const Shape rails_shape;
constinit const Shape rails_shape{
    .name = "rails",
    .summary = "a leaf switch for the i-th devices of all nodes, each i",
    .picture = picture,
    .parameters = takes,
    .direct = false,
    .blocks = blocks,
    .build = build};

}  // namespace fourfold
