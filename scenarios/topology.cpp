// `fourfold topology`: what a cluster is made of, how far apart its devices are, what it carries
// from one half to the other, and a route.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "results/table.hpp"
#include "scenarios/arguments.hpp"
#include "scenarios/commands.hpp"
#include "scenarios/drawing.hpp"
#include "scenarios/loading.hpp"
#include "topology/cuts.hpp"
#include "topology/dot.hpp"
#include "topology/routes.hpp"
#include "topology/survey.hpp"

namespace fourfold {
namespace {

using nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

struct Ends {
    DeviceId from, to;
};

struct Findings {
    const Scenario& scenario;
    Diameter diameter;
    BytesPerSecond bisection{};
    std::optional<Ends> ends;  // of the route; nothing where there is one device
    Route route;

    [[nodiscard]] const Graph& graph() const { return scenario.graph; }
};

// ------------------------------------------------------------------------------------ the route

/// A rank, or the name of a device.
Result<DeviceId> device_of(std::string_view text, const Graph& graph) {
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error == std::errc() && end == text.data() + text.size()) {
        if (rank < graph.devices().size()) return DeviceId{rank};
        return problem("--route", fmt::format("no rank {}; ranks are 0 to {}", rank,
                                              graph.devices().size() - 1));
    }
    const Result<VertexId> vertex = graph.find(text);
    if (!vertex) return problem("--route", vertex.error().what);
    if (graph[*vertex].is_device) return graph[*vertex].device;
    return problem("--route",
                   fmt::format("'{}' is a switch; a route leads from device to device", text));
}

Result<std::optional<Ends>> ends_of(std::string_view text, const Graph& graph) {
    const auto devices = static_cast<std::uint32_t>(graph.devices().size());
    if (text.empty()) {
        if (devices == 1) return std::nullopt;
        return Ends{DeviceId{0}, DeviceId{devices - 1}};
    }
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos || text.find(',', comma + 1) != std::string_view::npos) {
        return problem("--route", fmt::format("'{}' is not two ranks, as in 0,9", text));
    }
    const auto from = device_of(text.substr(0, comma), graph);
    if (!from) return tl::unexpected(from.error());
    const auto to = device_of(text.substr(comma + 1), graph);
    if (!to) return tl::unexpected(to.error());
    if (*from == *to) return problem("--route", "a route needs two ranks that differ, as in 0,9");
    return Ends{*from, *to};
}

Result<Findings> find(const Scenario& scenario, std::string_view route) {
    const Graph& graph = scenario.graph;
    const auto ends = ends_of(route, graph);
    if (!ends) return tl::unexpected(ends.error());
    Findings findings{.scenario = scenario,
                      .diameter = diameter(graph),
                      .bisection = bisection_bandwidth(graph),
                      .ends = *ends,
                      .route = {}};
    if (*ends) findings.route = Routes(graph).route((*ends)->from, (*ends)->to);
    return findings;
}

BytesPerSecond slowest(const Findings& findings) {
    const auto rate = [&](LinkId link) { return findings.graph()[link].rate; };
    return std::ranges::min(findings.route.path | std::views::transform(rate));
}

// ----------------------------------------------------------------------------------------- text

constexpr std::size_t groups_shown_max = 40;

std::string counted(std::size_t count, std::string_view one) {
    std::string_view many = count == 1 ? "" : one.ends_with("ch") ? "es" : "s";
    return fmt::format("{} {}{}", grouped(count), one, many);
}

/// The first rows, and how many were left out.
std::string shown(Rows rows, const std::set<std::size_t>& left) {
    const std::size_t more = rows.size() - std::min(rows.size(), groups_shown_max);
    rows.resize(rows.size() - more);
    std::string text = indented(aligned(rows, left), "  ");
    if (more > 0) text += fmt::format("    and {} more kinds\n", grouped(more));
    return text;
}

std::string vertices_text(const Graph& graph) {
    Rows rows;
    for (const VertexGroup& group : vertex_groups(graph)) {
        const std::string& first = graph[group.first].name;
        rows.push_back({grouped(group.count),
                        group.count == 1 ? first : first + " .. " + graph[group.last].name});
    }
    return "\n  vertices\n" + shown(std::move(rows), {1});
}

std::string links_text(const Graph& graph) {
    Rows rows{{"", "", "bandwidth", "usable", "latency"}};
    for (const LinkGroup& group : link_groups(graph)) {
        rows.push_back({grouped(group.count), group.from + " -> " + group.to,
                        to_text(group.spec.bandwidth), to_text(group.rate),
                        to_text(group.spec.latency)});
    }
    return "\n  links, one direction each\n" + shown(std::move(rows), {1});
}

std::string diameter_text(const Findings& findings) {
    const Diameter& diameter = findings.diameter;
    const std::size_t devices = findings.graph().devices().size();
    std::string how = "the longest of all shortest routes";
    if (!diameter.exact) {
        how = fmt::format("or more: the longest shortest route from {} of {} devices",
                          grouped(diameter.sources), grouped(devices));
    }
    return fmt::format("\n  diameter   {}, {}; {}\n", counted(diameter.links, "link"),
                       to_text(diameter.latency), how);
}

std::string bisection_text(const Findings& findings) {
    const std::size_t devices = findings.graph().devices().size();
    return fmt::format(
        "  bisection  {} usable; the least cut between ranks 0 .. {} and the others, by maximum "
        "flow\n",
        to_text(findings.bisection), devices / 2 - 1);
}

std::string route_text(const Findings& findings) {
    const Graph& graph = findings.graph();
    Rows rows{{"", "bandwidth", "usable", "latency"}};
    for (const LinkId id : findings.route.path) {
        const Link& link = graph[id];
        rows.push_back({graph.name(id), to_text(link.spec.bandwidth), to_text(link.rate),
                        to_text(link.spec.latency)});
    }
    rows.push_back({counted(findings.route.path.size(), "link"), "", to_text(slowest(findings)),
                    to_text(findings.route.latency)});
    std::string text = fmt::format("\n  route from rank {} to rank {}\n", findings.ends->from.value,
                                   findings.ends->to.value);
    text += indented(aligned(rows, {0}), "  ");
    const std::size_t links = findings.route.shares.size();
    if (links > findings.route.path.size()) {
        text += fmt::format("    one of several as short, which have {} in all\n",
                            counted(links, "link"));
    }
    return text;
}

std::string to_text(const Findings& findings) {
    const Graph& graph = findings.graph();
    const std::size_t devices = graph.devices().size();
    std::string text = fmt::format("{}\n  {} in {}, {}, {}\n", findings.scenario.name,
                                   counted(devices, "device"), counted(count_nodes(graph), "node"),
                                   counted(graph.vertices().size() - devices, "switch"),
                                   counted(graph.links().size(), "link"));
    text += vertices_text(graph);
    if (!findings.ends) return text;
    return text + links_text(graph) + diameter_text(findings) + bisection_text(findings) +
           route_text(findings);
}

// ----------------------------------------------------------------------------------------- JSON

ordered_json link_json(const LinkSpec& spec, BytesPerSecond rate) {
    return {{"bandwidth_bytes_per_s", spec.bandwidth.value},
            {"usable_bytes_per_s", rate.value},
            {"latency_s", to_seconds(spec.latency)}};
}

ordered_json route_json(const Findings& findings) {
    if (!findings.ends) return nullptr;
    const Graph& graph = findings.graph();
    ordered_json links = ordered_json::array();
    for (const LinkId id : findings.route.path) {
        ordered_json link = {{"from", graph[graph[id].from].name},
                             {"to", graph[graph[id].to].name}};
        link.update(link_json(graph[id].spec, graph[id].rate));
        links.push_back(std::move(link));
    }
    return {{"from_rank", findings.ends->from.value},
            {"to_rank", findings.ends->to.value},
            {"links", std::move(links)},
            {"usable_bytes_per_s", slowest(findings).value},
            {"latency_s", to_seconds(findings.route.latency)},
            {"links_of_all_shortest", findings.route.shares.size()}};
}

ordered_json to_json(const Findings& findings) {
    const Graph& graph = findings.graph();
    ordered_json vertices = ordered_json::array(), links = ordered_json::array();
    for (const VertexGroup& group : vertex_groups(graph)) {
        vertices.push_back({{"names", group.pattern},
                            {"count", group.count},
                            {"first", graph[group.first].name},
                            {"last", graph[group.last].name}});
    }
    for (const LinkGroup& group : link_groups(graph)) {
        ordered_json link = {{"from", group.from}, {"to", group.to}, {"count", group.count}};
        link.update(link_json(group.spec, group.rate));
        links.push_back(std::move(link));
    }
    const std::size_t devices = graph.devices().size();
    return {{"name", findings.scenario.name},
            {"devices", devices},
            {"nodes", count_nodes(graph)},
            {"switches", graph.vertices().size() - devices},
            {"links", graph.links().size()},
            {"vertex_groups", std::move(vertices)},
            {"link_groups", std::move(links)},
            {"diameter",
             {{"links", findings.diameter.links},
              {"latency_s", to_seconds(findings.diameter.latency)},
              {"exact", findings.diameter.exact},
              {"sources", findings.diameter.sources}}},
            {"bisection_bytes_per_s", findings.bisection.value},
            {"route", route_json(findings)}};
}

}  // namespace

int topology_command(const TopologyOptions& options) {
    const auto loaded = load(options.scenarios);
    if (!loaded) return bad_input;
    const std::vector<Scenario>& scenarios = loaded->scenarios;
    if (!options.dot.empty() && scenarios.size() > 1) {
        return refuse({"--dot", fmt::format("draws one cluster, but there are {} scenarios",
                                            scenarios.size())});
    }
    std::vector<Findings> all;
    for (const Scenario& scenario : scenarios) {
        Result<Findings> findings = find(scenario, options.route);
        if (!findings) return refuse(findings.error());
        all.push_back(std::move(*findings));
    }
    if (!options.dot.empty()) {
        const Graph& graph = scenarios.front().graph;
        if (!write_file(options.dot, [&](std::ostream& out) { write_dot(out, graph); })) {
            return failed;
        }
    }
    if (options.json) {
        ordered_json json = ordered_json::array();
        for (const Findings& findings : all) json.push_back(to_json(findings));
        std::cout << (json.size() == 1 ? json.front() : json).dump(2) << "\n";
    } else {
        for (const Findings& findings : all) std::cout << to_text(findings);
    }
    return std::cout.flush() ? done : failed;
}

}  // namespace fourfold
