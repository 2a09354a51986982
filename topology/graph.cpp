#include "topology/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/strong_components.hpp>
#include <cmath>
#include <utility>

#include "topology/adjacency.hpp"
#include "topology/check.hpp"
#include "topology/closest.hpp"

namespace fourfold {
namespace {

std::string name_of(const std::vector<Vertex>& vertices, const Link& link) {
    return fmt::format("{} -> {}", vertices[link.from.value].name, vertices[link.to.value].name);
}

/// In doubles, as people reckon: 0.7 of 10 GB/s is 7 GB/s and not a byte less.
BytesPerSecond usable(const LinkSpec& spec) {
    if (spec.efficiency == 1.0) return spec.bandwidth;
    const double rate = std::floor(static_cast<double>(spec.bandwidth.value) * spec.efficiency);
    return {std::min(spec.bandwidth.value, static_cast<std::int64_t>(rate))};
}

Result<void> check_names(const std::vector<Vertex>& vertices) {
    std::vector<std::string_view> names;
    names.reserve(vertices.size());
    for (const Vertex& vertex : vertices) names.push_back(vertex.name);
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice == names.end()) return {};
    return problem("vertices",
                   fmt::format("two vertices are named '{}'; names must differ", *twice));
}

Result<void> check_link(const std::vector<Vertex>& vertices, const Link& link) {
    const auto refuse = [&](std::string_view why) {
        return problem("links", fmt::format("link '{}': {}", name_of(vertices, link), why));
    };
    if (link.from == link.to) return refuse("it leads from a vertex to itself");
    if (const auto fine = check(link.spec); !fine) return refuse(fine.error().what);
    // So that no sum of latencies along a path can overflow.
    const Duration longest = duration_limit / static_cast<std::int64_t>(vertices.size());
    if (link.spec.latency > longest) {
        return refuse(fmt::format("latency {} is too long; at most {} in a graph of {} vertices",
                                  to_text(link.spec.latency), to_text(longest), vertices.size()));
    }
    return {};
}

Adjacency adjacency(std::size_t vertices, const std::vector<Link>& links) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
    std::vector<LinkId> link_ids;
    ends.reserve(links.size());
    link_ids.reserve(links.size());
    for (const LinkId id : ids<LinkId>(links.size())) {
        ends.emplace_back(links[id.value].from.value, links[id.value].to.value);
        link_ids.push_back(id);
    }
    return {Adjacency::Boost(boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(),
                             link_ids.begin(), static_cast<std::uint32_t>(vertices))};
}

/// Devices reach each other if all lie in one strongly connected component.
Result<void> check_reach(const Graph& graph) {
    std::vector<std::uint32_t> component(graph.vertices().size());
    const Adjacency::Boost& boost_graph = graph.adjacency().graph;
    boost::strong_components(
        boost_graph, boost::make_iterator_property_map(component.begin(),
                                                       get(boost::vertex_index, boost_graph)));
    const VertexId first = graph.devices().front();
    for (const VertexId other : graph.devices()) {
        if (component[first.value] == component[other.value]) continue;
        // Tarjan numbers components against the direction of travel: none reaches a higher one.
        const bool outward = component[first.value] < component[other.value];
        const auto [from, to] = outward ? std::pair(first, other) : std::pair(other, first);
        return problem("links", fmt::format("no route from device '{}' to device '{}'; every "
                                            "device must reach every other",
                                            graph[from].name, graph[to].name));
    }
    return {};
}

}  // namespace

VertexId GraphDraft::add_device(std::string name, std::uint32_t node) {
    vertices.push_back(
        {.name = std::move(name), .is_device = true, .device = DeviceId{devices++}, .node = node});
    return {static_cast<std::uint32_t>(vertices.size() - 1)};
}

VertexId GraphDraft::add_switch(std::string name) {
    vertices.push_back({.name = std::move(name), .is_device = false, .device = {}, .node = 0});
    return {static_cast<std::uint32_t>(vertices.size() - 1)};
}

void GraphDraft::add_link(VertexId from, VertexId to, const LinkSpec& spec) {
    FOURFOLD_CHECK(from.value < vertices.size() && to.value < vertices.size(), "{} -> {}",
                   from.value, to.value);
    links.push_back({.from = from, .to = to, .spec = spec, .rate = {}});  // the rate: when sealed
}

void GraphDraft::add_cable(VertexId a, VertexId b, const LinkSpec& spec) {
    add_link(a, b, spec);
    add_link(b, a, spec);
}

Graph::Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

namespace {

template <class Edges>
std::uint32_t place_in(const Edges& edges, const Adjacency::Boost& graph, LinkId link) {
    const auto found = std::find_if(edges.first, edges.second,
                                    [&](const auto& edge) { return graph[edge] == link; });
    return static_cast<std::uint32_t>(std::distance(edges.first, found));
}

}  // namespace

std::uint32_t Graph::place_at_start(LinkId link) const {
    const Adjacency::Boost& graph = adjacency_->graph;
    return place_in(out_edges(links_[link.value].from.value, graph), graph, link);
}

std::uint32_t Graph::place_at_end(LinkId link) const {
    const Adjacency::Boost& graph = adjacency_->graph;
    return place_in(in_edges(links_[link.value].to.value, graph), graph, link);
}

Result<VertexId> Graph::find(std::string_view name) const {
    const auto found = std::ranges::find(vertices_, name, &Vertex::name);
    if (found != vertices_.end()) {
        return VertexId{static_cast<std::uint32_t>(found - vertices_.begin())};
    }
    std::vector<std::string_view> names;
    for (const Vertex& vertex : vertices_) names.push_back(vertex.name);
    constexpr std::size_t listed = 16;  // a longer list helps nobody
    if (names.size() <= listed || closest(name, names)) {
        return problem("", unknown("vertex", name, names));
    }
    return problem("", fmt::format("unknown vertex '{}'; names are like '{}' and '{}'", name,
                                   names.front(), names.back()));
}

std::string Graph::name(LinkId link) const { return name_of(vertices_, links_[link.value]); }

Result<void> check(const LinkSpec& spec) {
    if (spec.bandwidth.value <= 0) {
        return problem("bandwidth",
                       fmt::format("bandwidth {} is not more than zero", to_text(spec.bandwidth)));
    }
    if (spec.latency < Duration::zero()) {
        return problem("latency", fmt::format("latency {} is negative", to_text(spec.latency)));
    }
    if (!(spec.efficiency > 0 && spec.efficiency <= 1)) {  // so that it refuses NaN too
        return problem("efficiency", fmt::format("efficiency {} is not more than 0 and at most 1",
                                                 spec.efficiency));
    }
    if (usable(spec).value == 0) {
        return problem("efficiency", fmt::format("efficiency {} leaves less than 1 B/s of {}",
                                                 spec.efficiency, to_text(spec.bandwidth)));
    }
    return {};
}

Result<Graph> seal(GraphDraft draft) {
    if (draft.devices == 0) return problem("vertices", "there is no device");
    if (auto fine = check_names(draft.vertices); !fine) return tl::unexpected(fine.error());
    for (Link& link : draft.links) {
        if (auto fine = check_link(draft.vertices, link); !fine) {
            return tl::unexpected(fine.error());
        }
        link.rate = usable(link.spec);
    }
    Graph graph;
    graph.adjacency_ =
        std::make_unique<const Adjacency>(adjacency(draft.vertices.size(), draft.links));
    graph.vertices_ = std::move(draft.vertices);
    graph.links_ = std::move(draft.links);
    graph.routing_ = draft.routing;
    if (draft.routing.kind == Routing::Kind::balanced) graph.blocks_ = std::move(draft.blocks);
    graph.odd_ = std::move(draft.odd);
    std::ranges::sort(graph.odd_);
    graph.devices_.resize(draft.devices);
    for (const VertexId id : ids<VertexId>(graph.vertices_.size())) {
        if (graph[id].is_device) graph.devices_[graph[id].device.value] = id;
    }
    if (auto fine = check_reach(graph); !fine) return tl::unexpected(fine.error());
    return graph;
}

Graph with_rates(const Graph& graph, double within, double across) {
    // The one node whose devices a switch joins; `several` or `nobody` otherwise.
    constexpr std::uint32_t nobody = ~std::uint32_t{0}, several = nobody - 1;
    std::vector<std::uint32_t> node(graph.vertices().size(), nobody);
    const auto meet = [&](VertexId a, VertexId b) {
        if (graph[a].is_device) return;
        std::uint32_t& own = node[a.value];
        const std::uint32_t other = graph[b].is_device ? graph[b].node : several;
        own = own == nobody || own == other ? other : several;
    };
    for (const Link& link : graph.links()) {
        meet(link.from, link.to);
        meet(link.to, link.from);
    }
    const auto node_of = [&](VertexId vertex) {
        return graph[vertex].is_device ? graph[vertex].node : node[vertex.value];
    };
    GraphDraft draft;
    draft.vertices.assign(graph.vertices().begin(), graph.vertices().end());
    draft.links.assign(graph.links().begin(), graph.links().end());
    draft.blocks = {.sizes = {graph.blocks().begin(), graph.blocks().end()},
                    .rails = graph.rails(),
                    .share_uplinks = graph.shares_uplinks()};
    draft.odd.assign(graph.odd().begin(), graph.odd().end());
    draft.devices = static_cast<std::uint32_t>(graph.devices().size());
    draft.routing = graph.routing();
    for (Link& link : draft.links) {
        const std::uint32_t a = node_of(link.from), b = node_of(link.to);
        const double factor = a == b && a < several ? within : across;
        const double bandwidth = static_cast<double>(link.spec.bandwidth.value) * factor;
        link.spec.bandwidth.value = std::max<std::int64_t>(1, std::llround(bandwidth));
    }
    Result<Graph> scaled = seal(std::move(draft));
    FOURFOLD_CHECK(scaled, "a graph with other rates is no graph");
    return std::move(*scaled);
}

}  // namespace fourfold
