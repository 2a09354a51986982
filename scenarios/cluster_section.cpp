#include "scenarios/cluster_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

#include "scenarios/fields.hpp"
#include "topology/closest.hpp"

namespace fourfold {
namespace {

constexpr std::int64_t devices_max = std::int64_t{1} << 20;  // what build_cluster takes

// Names of a small graph are worth comparing; in a large one they differ by their numbers.
constexpr std::size_t compared_names_max = 4096;

using Names = std::map<std::string_view, VertexId>;

Names names_of(const GraphDraft& draft) {
    Names names;
    for (const VertexId id : ids<VertexId>(draft.vertices.size())) {
        names.emplace(draft.vertices[id.value].name, id);
    }
    return names;
}

std::string unknown_vertex(const std::string& name, const Names& names) {
    std::vector<std::string_view> known;
    for (const auto& [one, id] : names) known.push_back(one);
    const bool compare = known.size() <= compared_names_max;
    if (const auto near = compare ? closest(name, known) : std::nullopt) {
        return fmt::format("unknown vertex {}; did you mean '{}'?", in_quotes(name), *near);
    }
    return fmt::format("unknown vertex {}; `fourfold topology` prints the names", in_quotes(name));
}

std::optional<VertexId> find_vertex(const std::string& name, const Names& names, Place place,
                                    Report& report) {
    const auto found = names.find(name);
    if (found != names.end()) return found->second;
    report.error(place, report.full() ? "unknown vertex" : unknown_vertex(name, names));
    return std::nullopt;
}

void read_device_key(Fields& cluster, Need need, const Catalog& catalog, Device& into) {
    const auto find = [&catalog](std::string_view name) { return find_device(catalog, name); };
    const YamlNode* node = cluster.value("device", need, "a100-sxm-80gb");
    if (node == nullptr) return;
    if (node->kind != YamlNode::Kind::mapping) {
        cluster.look_up("device", Need::required, into, "a100-sxm-80gb", find);
        return;
    }
    Fields fields(cluster, "device", Need::required, "a100-sxm-80gb");
    into.name = "custom";
    fields.look_up("base", Need::optional, into, "a100-sxm-80gb", find);
    read_device(fields, fields.has("base"), into);
}

// ------------------------------------------------------------------------- nodes and their fabric

constexpr std::string_view fabric_example = "{shape: switch, bandwidth: 25 GB/s, latency: 5 us}";

void read_parameter(Fields& fields, const ShapeParameter& parameter, ShapeParameters& into) {
    const Need need = Need::optional;
    struct Reader {
        void operator()(std::vector<std::int64_t> ShapeParameters::*sizes) const {
            fields.integers(name, need, into.*sizes, {1, devices_max, 4}, "[4, 2]");
        }
        void operator()(double ShapeParameters::*ratio) const {
            fields.number(name, need, into.*ratio,
                          {.min = 1, .max = 1e6, .above_min = false, .example = "2"});
        }
        void operator()(std::int64_t ShapeParameters::*count) const {
            fields.integer(name, need, into.*count, {1, devices_max, into.*count});
        }
        void operator()(bool ShapeParameters::*truth) const {
            fields.boolean(name, need, into.*truth);
        }
        void operator()(LinkSpec ShapeParameters::*link) const {
            Fields own(fields, name, need, "{bandwidth: 100 Gb/s, latency: 10 ms}");
            if (own.present()) read_link(own, into.*link != LinkSpec{}, into.*link);
        }
        Fields& fields;
        std::string_view name;
        ShapeParameters& into;
    };
    std::visit(Reader{fields, parameter.name, into}, parameter.field);
}

/// Reads what the shape takes, and says what it does not. An unknown shape (nullptr) may take all.
void read_parameters(Fields& fields, const Shape* shape, ShapeParameters& into) {
    for (const Shape* other : shapes()) {
        for (const ShapeParameter& each : other->parameters) {
            if (other == shape) {
                read_parameter(fields, each, into);
            } else if (shape == nullptr) {
                fields.has(each.name);
            } else if (!shape->takes(each.name)) {
                fields.refuse(each.name, fmt::format("shape '{}' does not take '{}'; remove it",
                                                     shape->name, each.name));
            }
        }
    }
}

// Reads over what `fabric` already holds.
void read_fabric(Fields& cluster, std::string_view key, Need need, const Catalog& catalog,
                 std::optional<Fabric>& fabric, TransportCosts& costs) {
    Fields fields(cluster, key, need, fabric_example);
    if (!fields.present()) return;
    const bool has_base = fabric.has_value();
    if (!has_base) fabric.emplace();
    const Shape* base_shape = fabric->shape;
    fields.look_up("shape", has_base ? Need::optional : Need::required, fabric->shape, "switch",
                   find_shape);

    LinkKind kind{.name = {}, .spec = fabric->link, .costs = costs};
    fields.look_up("link", Need::optional, kind, "nvlink3",
                   [&catalog](std::string_view name) { return find_link(catalog, name); });
    read_link(fields, has_base || fields.has("link"), kind.spec);
    read_costs(fields, kind.costs);
    fabric->link = kind.spec;
    costs = kind.costs;

    if (fabric->shape != base_shape) fabric->parameters = {};
    read_parameters(fields, fabric->shape, fabric->parameters);
}

void read_nodes(Fields& cluster, Need need, const Catalog& catalog, const ClusterKind& base,
                ClusterSection& section) {
    std::int64_t nodes = 0, devices_per_node = base.devices_per_node;
    cluster.integer("nodes", Need::required, nodes, {1, devices_max, 2});
    cluster.integer("devices_per_node", need, devices_per_node, {1, devices_max, 8});
    ClusterShape shape;
    shape.node = base.node;
    shape.fabric = base.fabric;
    section.node = base.node_costs;
    section.fabric = base.fabric_costs;
    const Need node_need = devices_per_node > 1 ? need : Need::optional;
    const Need fabric_need = nodes > 1 ? need : Need::optional;
    read_fabric(cluster, "node", node_need, catalog, shape.node, section.node);
    read_fabric(cluster, "fabric", fabric_need, catalog, shape.fabric, section.fabric);

    const std::int64_t devices = nodes * devices_per_node;  // at most 2^40
    if (devices > devices_max) {
        cluster.error("nodes", fmt::format("{} nodes of {} devices are {} devices; at most {}",
                                           nodes, devices_per_node, devices, devices_max));
        return;
    }
    shape.nodes = static_cast<std::uint32_t>(nodes);
    shape.devices_per_node = static_cast<std::uint32_t>(devices_per_node);
    section.devices = static_cast<std::uint32_t>(devices);
    section.shape = std::move(shape);
}

// ------------------------------------------------------------------------------------ a list

constexpr std::string_view vertices_example = "[gpu0, gpu1, {name: switch0, kind: switch}]";
constexpr std::string_view links_example =
    "[{from: gpu0, to: switch0, bandwidth: 25 GB/s, latency: 5 us, both_ways: true}]";

void add_vertex(std::string name, bool is_device, std::uint32_t node, Place place, Names& names,
                GraphDraft& draft, Report& report) {
    if (name.empty()) {
        report.error(place, "a vertex without a name; write for example 'gpu0'");
        return;
    }
    if (names.contains(name)) {
        report.error(place,
                     fmt::format("two vertices are named {}; names must differ", in_quotes(name)));
        return;
    }
    const VertexId id =
        is_device ? draft.add_device(std::move(name), node) : draft.add_switch(std::move(name));
    names.emplace(draft.vertices[id.value].name, id);
}

void read_vertices(Fields& graph, Names& names, GraphDraft& draft) {
    Report& report = graph.report();
    const auto& items = graph.list("vertices", Need::required, vertices_example);
    // Short names live inside their vertex: it must not move, or `names` would dangle.
    draft.vertices.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
        const YamlNode& item = items[i];
        if (item.kind == YamlNode::Kind::scalar) {
            add_vertex(item.text, true, 0, item.place, names, draft, report);
            continue;
        }
        Fields fields(item, item.place, fmt::format("cluster.graph.vertices.{}", i), report);
        std::string name;
        bool is_device = true;
        std::int64_t node = 0;
        const bool named = fields.text("name", Need::required, name, "gpu0");
        fields.choice<bool>("kind", "kind", Need::optional, is_device,
                            {{"device", true}, {"switch", false}});
        fields.integer("node", Need::optional, node, {0, devices_max - 1, 0});
        if (!named) continue;
        add_vertex(name, is_device, static_cast<std::uint32_t>(node), item.place, names, draft,
                   report);
    }
}

void read_links(Fields& graph, const Catalog& catalog, const Names& names, GraphDraft& draft) {
    Report& report = graph.report();
    // One device alone needs none.
    const Need need = draft.vertices.size() > 1 ? Need::required : Need::optional;
    const auto& items = graph.list("links", need, links_example);
    for (std::size_t i = 0; i < items.size(); ++i) {
        const YamlNode& item = items[i];
        Fields fields(item, item.place, fmt::format("cluster.graph.links.{}", i), report);
        std::string from, to;
        LinkKind kind;
        bool both_ways = false;
        const bool has_from = fields.text("from", Need::required, from, "gpu0");
        const bool has_to = fields.text("to", Need::required, to, "switch0");
        fields.look_up("link", Need::optional, kind, "nvlink3",
                       [&catalog](std::string_view name) { return find_link(catalog, name); });
        read_link(fields, fields.has("link"), kind.spec);
        fields.boolean("both_ways", Need::optional, both_ways);
        if (!has_from || !has_to) continue;

        const auto a = find_vertex(from, names, locate(item, "from"), report);
        const auto b = find_vertex(to, names, locate(item, "to"), report);
        if (!a || !b) continue;
        if (a == b) {
            fields.error("to", fmt::format("a link from {} to itself; name another vertex",
                                           in_quotes(from)));
            continue;
        }
        draft.add_link(*a, *b, kind.spec);
        if (both_ways) draft.add_link(*b, *a, kind.spec);
    }
}

void read_graph(Fields& cluster, const Catalog& catalog, ClusterSection& section) {
    for (const std::string_view key : {"base", "nodes", "devices_per_node", "node", "fabric"}) {
        if (!cluster.has(key)) continue;
        cluster.error_at_key(key, fmt::format("'{}' and 'graph' both say how devices are joined; "
                                              "remove one of them",
                                              key));
    }
    Fields graph(cluster, "graph", Need::required, "{vertices: [...], links: [...]}");
    GraphDraft draft;
    Names names;
    const std::size_t errors = graph.report().errors();
    read_vertices(graph, names, draft);
    // With a vertex missing, each of its links would be a second complaint.
    const bool vertices_sound = graph.report().errors() == errors;
    if (vertices_sound) read_links(graph, catalog, names, draft);
    if (!vertices_sound) graph.has("links");
    if (vertices_sound && graph.present() && draft.devices == 0) {
        graph.error("vertices",
                    "no vertex is a device; write for example 'vertices: [gpu0, gpu1]'");
    }
    section.devices = draft.devices;
    section.graph = std::move(draft);
}

// ------------------------------------------------------------------------------------- building

// One slow port makes its device odd; a slow trunk is met by devices of many places.
void note_odd(const Link& link, GraphDraft& draft) {
    const Vertex& from = draft.vertices[link.from.value];
    const Vertex& to = draft.vertices[link.to.value];
    if (!from.is_device && !to.is_device) draft.blocks = {};
    for (const Vertex* end : {&from, &to}) {
        if (end->is_device) draft.odd.push_back(end->device);
    }
}

std::vector<LinkChange> slow_down(GraphDraft& draft, const std::vector<SlowLink>& slow_links,
                                  Report& report) {
    std::vector<LinkChange> changes;
    if (slow_links.empty()) return changes;
    const Names names = names_of(draft);
    std::map<std::pair<VertexId, VertexId>, std::pair<const SlowLink*, bool>> slow;
    for (const SlowLink& link : slow_links) {
        const auto from = find_vertex(link.from, names, link.from_place, report);
        const auto to = find_vertex(link.to, names, link.to_place, report);
        if (!from || !to) continue;
        const auto [twice, is_new] = slow.emplace(std::pair(*from, *to), std::pair(&link, false));
        if (is_new) continue;
        report.error(link.place, fmt::format("the link from {} to {} is slowed twice; "
                                             "multiply the factors",
                                             in_quotes(link.from), in_quotes(link.to)));
    }
    const auto change_of = [&slow](const Link& link) -> const SlowLink* {
        const auto found = slow.find({link.from, link.to});
        if (found == slow.end()) return nullptr;
        found->second.second = true;
        return found->second.first;
    };
    std::erase_if(draft.links, [&](const Link& link) {
        const SlowLink* change = change_of(link);
        const bool is_gone = change != nullptr && change->bandwidth == 0 && !change->at;
        if (is_gone) draft.blocks = {};
        return is_gone;
    });
    for (const LinkId id : ids<LinkId>(draft.links.size())) {
        Link& link = draft.links[id.value];
        const SlowLink* change = change_of(link);
        if (change == nullptr) continue;
        if (change->at) {
            changes.push_back({id, Time(*change->at), change->bandwidth});
            draft.blocks = {};
            continue;
        }
        const double rate = static_cast<double>(link.spec.bandwidth.value) * change->bandwidth;
        link.spec.bandwidth.value = std::max<std::int64_t>(1, std::llround(std::floor(rate)));
        link.spec.latency = scale(link.spec.latency, change->latency);
        note_odd(link, draft);
    }
    for (const auto& [ends, change] : slow) {
        if (change.second) continue;
        report.error(
            change.first->place,
            fmt::format("no link leads from {} to {}; `fourfold topology` prints the links",
                        in_quotes(change.first->from), in_quotes(change.first->to)));
    }
    return changes;
}

}  // namespace

void read_cluster_kind(Fields& fields, const Catalog& catalog, ClusterKind& into) {
    read_device_key(fields, Need::required, catalog, into.device);
    fields.integer("devices_per_node", Need::required, into.devices_per_node, {1, devices_max, 8});
    const Need node_need = into.devices_per_node > 1 ? Need::required : Need::optional;
    read_fabric(fields, "node", node_need, catalog, into.node, into.node_costs);
    read_fabric(fields, "fabric", Need::required, catalog, into.fabric, into.fabric_costs);
}

ClusterSection read_cluster(Fields& scenario, const Catalog& catalog) {
    ClusterSection section;
    const std::size_t errors = scenario.report().errors();
    {
        Fields cluster(scenario, "cluster", Need::required,
                       "{device: a100-sxm-80gb, nodes: 2, devices_per_node: 8, ...}");
        section.sound = cluster.present();
        ClusterKind base;
        cluster.look_up("base", Need::optional, base, "selene",
                        [&catalog](std::string_view name) { return find_cluster(catalog, name); });
        section.device = base.device;
        // With an unknown base, each key would be a second complaint.
        const Need need = cluster.has("base") ? Need::optional : Need::required;
        read_device_key(cluster, need, catalog, section.device);
        if (cluster.has("graph")) {
            read_graph(cluster, catalog, section);
        } else {
            read_nodes(cluster, need, catalog, base, section);
        }
    }
    section.sound = section.sound && scenario.report().errors() == errors;
    return section;
}

std::optional<PerturbedGraph> build_graph(const ClusterSection& cluster, const Routing& routing,
                                          const std::vector<SlowLink>& slow_links,
                                          const YamlNode& scenario, Report& report) {
    Result<GraphDraft> draft =
        cluster.shape ? build_cluster(*cluster.shape) : Result<GraphDraft>(*cluster.graph);
    const std::string prefix = cluster.shape ? "cluster." : "cluster.graph.";
    if (!draft) {
        report.error(locate(scenario, prefix + draft.error().where), draft.error().what);
        return std::nullopt;
    }
    draft->routing = routing;
    const std::size_t errors = report.errors();
    std::vector<LinkChange> changes = slow_down(*draft, slow_links, report);
    if (report.errors() > errors) return std::nullopt;

    Result<Graph> graph = seal(std::move(*draft));
    if (!graph) {
        const auto gone = std::ranges::find_if(
            slow_links, [](const SlowLink& link) { return link.bandwidth == 0 && !link.at; });
        report.error(
            gone == slow_links.end() ? locate(scenario, prefix + graph.error().where) : gone->place,
            graph.error().what);
        return std::nullopt;
    }
    return PerturbedGraph{std::move(*graph), std::move(changes)};
}

}  // namespace fourfold
