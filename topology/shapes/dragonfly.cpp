#include <fmt/format.h>

#include <array>

#include "topology/shapes/shape.hpp"
#include "topology/tiers.hpp"

// Groups of routers, each router joined to all of its group, and each group to all others (Kim et
// al. 2008, Technology-Driven, Highly-Scalable Dragonfly Topology, sec. 3; the letters are theirs).
// A router has p endpoints, a - 1 links in its group and h global ones, so that there are at most
// a h + 1 groups. Fewer groups have several cables between every two, as many as all can have.
//
// Port k of a group, on its router k / h, leads to the (k mod (g - 1) + 1)-th group after it: port
// k' of that one leads back if both are in the same turn around the groups and their steps sum to
// g.
//
// The last group may be part empty; its links are not. Routes are the shortest of the graph: local,
// global, local, or two global links where these are fewer.

namespace fourfold {
namespace {

constexpr std::string_view picture = R"(
   group0 ----- group1       in a group     r0 --- r1
     |   \     /   |                        |  \ /  |
     |      X      |                        |  / \  |
     |   /     \   |                        r2 --- r3
   group2 ----- group3       each r: p endpoints, h other groups)";

constexpr std::array<ShapeParameter, 3> takes{{
    {"routers_per_group", "a: routers of a group", &ShapeParameters::routers_per_group},
    {"endpoints_per_router", "p: endpoints of a router", &ShapeParameters::endpoints_per_router},
    {"global_links_per_router", "h: links of a router to other groups; at most a h + 1 groups",
     &ShapeParameters::global_links_per_router},
}};

constexpr std::size_t links_max = std::size_t{1} << 24;

struct Sizes {
    std::size_t routers, endpoints, global_links, groups;
};

Result<Sizes> sizes_of(std::size_t endpoints, const ShapeParameters& parameters) {
    constexpr std::int64_t most = std::int64_t{1} << 20;
    for (const ShapeParameter& each : takes) {
        const std::int64_t count =
            parameters.*std::get<std::int64_t ShapeParameters::*>(each.field);
        if (count >= 1 && count <= most) continue;
        return problem(std::string(each.name),
                       fmt::format("'{}' is 1 to {}, not {}", each.name, most, count));
    }
    Sizes sizes{.routers = static_cast<std::size_t>(parameters.routers_per_group),
                .endpoints = static_cast<std::size_t>(parameters.endpoints_per_router),
                .global_links = static_cast<std::size_t>(parameters.global_links_per_router),
                .groups = 0};
    const std::size_t group = sizes.routers * sizes.endpoints;
    const std::size_t reach = sizes.routers * sizes.global_links + 1;
    sizes.groups = (endpoints - 1) / group + 1;
    if (sizes.groups > reach) {
        return problem(
            "global_links_per_router",
            fmt::format("{} endpoints need {} groups of {} x {}, but {} x {} global links "
                        "join at most {} groups",
                        endpoints, sizes.groups, sizes.routers, sizes.endpoints, sizes.routers,
                        sizes.global_links, reach));
    }
    const std::size_t ports = sizes.routers * (sizes.routers - 1 + sizes.global_links);
    if (ports > links_max / sizes.groups) {
        return problem("routers_per_group",
                       fmt::format("groups of {} routers have too many links; at most {} in all",
                                   sizes.routers, links_max));
    }
    return sizes;
}

void join_groups(const std::vector<std::vector<VertexId>>& groups, std::size_t global_links,
                 const LinkSpec& spec, GraphDraft& draft) {
    const std::size_t others = groups.size() - 1;
    if (others == 0) return;
    const std::size_t turns = groups.front().size() * global_links / others;
    for (std::size_t turn = 0; turn < turns; ++turn) {
        for (std::size_t from = 0; from < groups.size(); ++from) {
            for (std::size_t to = from + 1; to < groups.size(); ++to) {
                const std::size_t step = to - from;
                const std::size_t there = turn * others + step - 1;
                const std::size_t back = turn * others + others - step;
                draft.add_cable(groups[from][there / global_links], groups[to][back / global_links],
                                spec);
            }
        }
    }
}

Result<void> build(std::span<const VertexId> endpoints, const LinkSpec& spec,
                   const ShapeParameters& parameters, std::string_view prefix, GraphDraft& draft) {
    const Result<Sizes> sizes = sizes_of(endpoints.size(), parameters);
    if (!sizes) return tl::unexpected(sizes.error());
    std::vector<std::vector<VertexId>> groups;
    for (std::size_t i = 0; i < sizes->groups; ++i) {
        groups.push_back(
            add_switches(sizes->routers, fmt::format("{}group{}.router", prefix, i), draft));
    }
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
        const std::size_t router = i / sizes->endpoints;
        draft.add_cable(endpoints[i], groups[router / sizes->routers][router % sizes->routers],
                        spec);
    }
    for (const auto& routers : groups) {
        for (std::size_t i = 0; i < routers.size(); ++i) {
            join_all({&routers[i], 1}, std::span(routers).subspan(i + 1), spec, draft);
        }
    }
    join_groups(groups, sizes->global_links, spec, draft);
    return {};
}

}  // namespace

extern const Shape dragonfly_shape;
constinit const Shape dragonfly_shape{
    .name = "dragonfly",
    .summary = "groups of routers, all joined in a group and all groups joined",
    .picture = picture,
    .parameters = takes,
    .direct = false,
    .blocks = nullptr,  // links between routers are shared by all of their endpoints
    .build = build};

}  // namespace fourfold
