#include "topology/dot.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace fourfold {
namespace {

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result + '"';
}

void write_devices(std::ostream& out, const Graph& graph) {
    std::map<std::uint32_t, std::vector<VertexId>> nodes;
    for (const VertexId id : graph.devices()) nodes[graph[id].node].push_back(id);
    for (const auto& [node, devices] : nodes) {
        const bool framed = devices.size() > 1 && nodes.size() > 1;
        if (framed) out << fmt::format("  subgraph cluster_{0} {{ label=\"node{0}\";\n", node);
        for (const VertexId id : devices) {
            out << fmt::format("    v{} [label={}, shape=box];\n", id.value,
                               quoted(graph[id].name));
        }
        if (framed) out << "  }\n";
    }
}

/// Each link that has an equal one the other way is written with it, once.
void write_links(std::ostream& out, const Graph& graph) {
    using Key = std::tuple<VertexId, VertexId, BytesPerSecond, Duration>;
    std::map<Key, int> unpaired;
    const auto key = [](VertexId from, VertexId to, const Link& link) {
        return Key{from, to, link.rate, link.spec.latency};
    };
    for (const Link& link : graph.links()) ++unpaired[key(link.from, link.to, link)];
    for (const Link& link : graph.links()) {
        int& own = unpaired[key(link.from, link.to, link)];
        if (own == 0) continue;
        --own;
        const auto back = unpaired.find(key(link.to, link.from, link));
        const bool is_cable = back != unpaired.end() && back->second > 0;
        if (is_cable) --back->second;
        out << fmt::format("  v{} -> v{} [label=\"{}\\n{}\"{}];\n", link.from.value, link.to.value,
                           to_text(link.rate), to_text(link.spec.latency),
                           is_cable ? ", dir=none" : "");
    }
}

}  // namespace

void write_dot(std::ostream& out, const Graph& graph) {
    out << "digraph topology {\n";
    write_devices(out, graph);
    for (const VertexId id : ids<VertexId>(graph.vertices().size())) {
        if (graph[id].is_device) continue;
        out << fmt::format("  v{} [label={}];\n", id.value, quoted(graph[id].name));
    }
    write_links(out, graph);
    out << "}\n";
}

}  // namespace fourfold
