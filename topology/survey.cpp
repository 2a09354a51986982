#include "topology/survey.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "topology/search.hpp"

// One search per device takes the square of the cluster. Two devices that are joined to
// the same vertices by the same links can change places, so that what is farthest from one is
// farthest from the other: one of them is enough. Where these are still too many, some are tried,
// evenly spaced.

namespace fourfold {
namespace {

constexpr std::size_t links_searched_max = 30'000'000;  // about a second
constexpr std::size_t sources_min = 8;

std::string pattern_of(const std::string& name) {
    std::string pattern;
    for (const char c : name) {
        const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
        if (!is_digit) pattern += c;
        if (is_digit && !pattern.ends_with('*')) pattern += '*';
    }
    return pattern;
}

/// Devices of which no two are joined alike.
std::vector<VertexId> unlike_devices(const Graph& graph) {
    using Joint = std::tuple<bool, VertexId, Duration>;  // outward, other end, latency
    std::vector<std::vector<Joint>> joints(graph.vertices().size());
    for (const Link& link : graph.links()) {
        joints[link.from.value].emplace_back(true, link.to, link.spec.latency);
        joints[link.to.value].emplace_back(false, link.from, link.spec.latency);
    }
    std::set<std::vector<Joint>> seen;
    std::vector<VertexId> unlike;
    for (const VertexId device : graph.devices()) {
        std::vector<Joint>& own = joints[device.value];
        std::ranges::sort(own);
        if (seen.insert(std::move(own)).second) unlike.push_back(device);
    }
    return unlike;
}

}  // namespace

std::vector<VertexGroup> vertex_groups(const Graph& graph) {
    std::vector<VertexGroup> groups;
    std::map<std::string, std::size_t> index;
    for (const VertexId id : ids<VertexId>(graph.vertices().size())) {
        const std::string pattern = pattern_of(graph[id].name);
        const auto [entry, is_new] = index.try_emplace(pattern, groups.size());
        if (is_new) groups.push_back({.pattern = pattern, .count = 0, .first = id, .last = id});
        VertexGroup& group = groups[entry->second];
        ++group.count;
        group.last = id;
    }
    return groups;
}

std::vector<LinkGroup> link_groups(const Graph& graph) {
    IdVector<VertexId, std::string> patterns;
    for (const Vertex& vertex : graph.vertices()) patterns.push_back(pattern_of(vertex.name));
    std::vector<LinkGroup> groups;
    using Key = std::tuple<std::string, std::string, BytesPerSecond, BytesPerSecond, Duration>;
    std::map<Key, std::size_t> index;
    for (const Link& link : graph.links()) {
        const std::string &from = patterns[link.from], &to = patterns[link.to];
        const auto [entry, is_new] = index.try_emplace(
            Key{from, to, link.spec.bandwidth, link.rate, link.spec.latency}, groups.size());
        if (is_new) groups.push_back({from, to, link.spec, link.rate, 0});
        ++groups[entry->second].count;
    }
    return groups;
}

std::size_t count_nodes(const Graph& graph) {
    std::set<std::uint32_t> nodes;
    for (const DeviceId device : ids<DeviceId>(graph.devices().size())) {
        nodes.insert(graph.node_of(device));
    }
    return nodes.size();
}

Diameter diameter(const Graph& graph) {
    const std::vector<VertexId> unlike = unlike_devices(graph);
    const std::size_t affordable = links_searched_max / (graph.links().size() + 1);
    const std::size_t sources = std::min(unlike.size(), std::max(sources_min, affordable));
    Diameter found{
        .latency = {}, .links = 0, .sources = sources, .exact = sources == unlike.size()};
    Search search(graph, Search::Direction::outward);
    for (std::size_t i = 0; i < sources; ++i) {
        search.start(unlike[sources == 1 ? 0 : i * (unlike.size() - 1) / (sources - 1)]);
        while (!search.exhausted()) search.advance();
        for (const VertexId device : graph.devices()) {
            const Cost cost = search.cost(device);
            found.latency = std::max(found.latency, cost.latency);
            found.links = std::max(found.links, cost.links);
        }
    }
    return found;
}

}  // namespace fourfold
