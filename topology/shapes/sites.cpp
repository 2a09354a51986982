#include <fmt/format.h>

#include <array>

#include "topology/shapes/shape.hpp"
#include "topology/tiers.hpp"

// Data centres that are far from each other: in each a switch that never blocks, and between every
// two a long link, most often a thin one, which all their traffic shares. Endpoints are dealt out
// in order, and no node lies in two sites.

namespace fourfold {
namespace {

constexpr std::string_view picture = R"(
      site0 ============= site1       ===: wan
    /  |  |  \          /  |  |  \
  e0  e1  e2  e3      e4  e5  e6  e7)";

constexpr std::array<ShapeParameter, 2> takes{{
    {"sites", "data centres, of as many endpoints each", &ShapeParameters::sites},
    {"wan", "bandwidth and latency of the link between two sites", &ShapeParameters::wan},
}};

constexpr std::int64_t sites_max = 1024;

Result<void> check_parameters(std::span<const VertexId> endpoints,
                              const ShapeParameters& parameters, const GraphDraft& draft) {
    const std::int64_t sites = parameters.sites;
    const auto count = static_cast<std::int64_t>(endpoints.size());
    if (sites < 2 || sites > sites_max) {
        return problem("sites", fmt::format("there are 2 to {} sites, not {}", sites_max, sites));
    }
    if (count % sites != 0) {
        return problem("sites", fmt::format("{} endpoints cannot be dealt out evenly to {} sites",
                                            count, sites));
    }
    const auto node = [&](std::int64_t i) {
        return draft.vertices[endpoints[static_cast<std::size_t>(i)].value].node;
    };
    for (std::int64_t first = count / sites; first < count; first += count / sites) {
        if (node(first) != node(first - 1)) continue;
        return problem("sites", fmt::format("node {} would lie in two of {} sites; let the sites "
                                            "divide the nodes",
                                            node(first), sites));
    }
    if (parameters.wan == LinkSpec{}) {
        return problem("wan",
                       "a link must join the sites; write for example 'wan: {bandwidth: 100 Gb/s, "
                       "latency: 10 ms}'");
    }
    if (const auto fine = check(parameters.wan); !fine) return problem("wan", fine.error().what);
    return {};
}

Result<void> build(std::span<const VertexId> endpoints, const LinkSpec& spec,
                   const ShapeParameters& parameters, std::string_view prefix, GraphDraft& draft) {
    if (auto fine = check_parameters(endpoints, parameters, draft); !fine) return fine;
    const auto count = static_cast<std::size_t>(parameters.sites);
    const auto sites = add_switches(count, fmt::format("{}site", prefix), draft);
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
        draft.add_cable(endpoints[i], sites[i * count / endpoints.size()], spec);
    }
    for (std::size_t i = 0; i < count; ++i) {
        join_all({&sites[i], 1}, std::span(sites).subspan(i + 1), parameters.wan, draft);
    }
    return {};
}

/// Among more than two it matters in which order messages go around.
Blocks blocks(std::uint32_t endpoints, std::uint32_t /*nodes*/, const ShapeParameters& parameters) {
    if (parameters.sites != 2) return {};
    return {.sizes = {endpoints / 2}, .share_uplinks = true};
}

}  // namespace

extern const Shape sites_shape;
constinit const Shape sites_shape{.name = "sites",
                                  .summary = "data centres, a switch each, joined by long links",
                                  .picture = picture,
                                  .parameters = takes,
                                  .direct = false,
                                  .blocks = blocks,
                                  .build = build};

}  // namespace fourfold
