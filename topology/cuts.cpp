#include "topology/cuts.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <map>
#include <utility>
#include <vector>

// The least cut is the maximum flow (Ford and Fulkerson 1956), found by the method of Boykov and
// Kolmogorov (2004). All devices of a half are one vertex of the flow network: what remains are the
// switches, with one edge for all links between the same two.

namespace fourfold {
namespace {

using FlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct FlowEdge {
    std::int64_t capacity = 0, residual = 0;
    FlowTraits::edge_descriptor reverse;
};
using FlowGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, FlowEdge>;

constexpr std::size_t first_half = 0, second_half = 1, first_switch = 2;

/// Each pair of joined ends once, with what passes one way and the other.
using Pipes = std::map<std::pair<std::size_t, std::size_t>, std::pair<std::int64_t, std::int64_t>>;

std::int64_t maximum_flow(const Pipes& pipes, std::size_t vertices, bool back) {
    FlowGraph flow(vertices);
    for (const auto& [ends, capacities] : pipes) {
        const auto there = add_edge(ends.first, ends.second, flow).first;
        const auto reverse = add_edge(ends.second, ends.first, flow).first;
        flow[there] = {back ? capacities.second : capacities.first, 0, reverse};
        flow[reverse] = {back ? capacities.first : capacities.second, 0, there};
    }
    std::vector<FlowTraits::edge_descriptor> parents(vertices);
    std::vector<boost::default_color_type> colors(vertices);
    std::vector<std::size_t> distances(vertices);
    const auto index = get(boost::vertex_index, flow);
    return boykov_kolmogorov_max_flow(flow, get(&FlowEdge::capacity, flow),
                                      get(&FlowEdge::residual, flow), get(&FlowEdge::reverse, flow),
                                      boost::make_iterator_property_map(parents.begin(), index),
                                      boost::make_iterator_property_map(colors.begin(), index),
                                      boost::make_iterator_property_map(distances.begin(), index),
                                      index, first_half, second_half);
}

}  // namespace

BytesPerSecond bisection_bandwidth(const Graph& graph) {
    const auto devices = graph.devices().size();
    if (devices < 2) return {};
    std::vector<std::size_t> place(graph.vertices().size());
    std::size_t vertices = first_switch;
    unsigned __int128 total = 0;
    for (const VertexId id : ids<VertexId>(graph.vertices().size())) {
        const Vertex& vertex = graph[id];
        const bool first = vertex.device.value < devices / 2;
        place[id.value] = !vertex.is_device ? vertices++ : first ? first_half : second_half;
    }
    for (const Link& link : graph.links()) total += static_cast<std::uint64_t>(link.rate.value);
    int dropped = 0;  // bits, so that no sum of rates overflows
    while (total >> dropped >= std::uint64_t{1} << 62) ++dropped;

    Pipes pipes;
    for (const Link& link : graph.links()) {
        const std::size_t from = place[link.from.value], to = place[link.to.value];
        if (from == to) continue;
        auto& [there, back] = pipes[std::minmax(from, to)];
        (from < to ? there : back) += link.rate.value >> dropped;
    }
    const std::int64_t least =
        std::min(maximum_flow(pipes, vertices, false), maximum_flow(pipes, vertices, true));
    constexpr std::int64_t most = duration_limit.count();
    return {least > most >> dropped ? most : least << dropped};
}

}  // namespace fourfold
