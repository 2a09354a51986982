#include "scenarios/background_section.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>

namespace fourfold {
namespace {

constexpr std::string_view flow_example =
    "[{from: node0.device0, to: node1.device0, bytes: 1 GiB}]";

// A stream is cut into messages of about the size in which collectives cut theirs.
constexpr Bytes stream_piece{std::int64_t{4} << 20};

constexpr Bytes bytes_max{std::int64_t{1} << 50};
// More than a million messages in a second would take longer to simulate than anybody waits.
constexpr Durations pauses{Duration(1'000'000), any_duration.max};

void read_stream(Fields& fields, BackgroundFlow& flow) {
    for (const std::string_view key : {"bytes", "every"}) {
        fields.refuse(key, fmt::format("a 'rate' is a constant stream; remove it or '{}'", key));
    }
    BytesPerSecond rate{};
    if (!fields.rate("rate", Need::required, rate)) return;
    flow.bytes = stream_piece;
    flow.every = stream_piece / rate;
    flow.steady = true;
}

void read_messages(Fields& fields, BackgroundFlow& flow) {
    fields.duration("every", Need::optional, flow.every, pauses);
    if (!fields.bytes("bytes", Need::required, flow.bytes, "1 GiB")) return;
    if (flow.bytes >= 1_B && flow.bytes <= bytes_max) return;
    fields.error("bytes", fmt::format("a message has 1 B to {}", to_text(bytes_max)));
}

std::optional<DeviceId> find_device(const std::string& name, Place place, const Graph& graph,
                                    Report& report) {
    const Result<VertexId> vertex = graph.find(name);
    if (!vertex) {
        report.error(place, vertex.error().what);
    } else if (!graph[*vertex].is_device) {
        report.error(place, fmt::format("{} is a switch; background flows from device to device",
                                        in_quotes(name)));
    } else {
        return graph[*vertex].device;
    }
    return std::nullopt;
}

}  // namespace

std::vector<NamedFlow> read_background(Fields& scenario) {
    std::vector<NamedFlow> flows;
    const auto& items = scenario.list("background", Need::optional, flow_example);
    for (std::size_t i = 0; i < items.size(); ++i) {
        Fields fields(items[i], items[i].place, fmt::format("background.{}", i), scenario.report());
        NamedFlow named;
        const bool has_from = fields.text("from", Need::required, named.from, "node0.device0");
        const bool has_to = fields.text("to", Need::required, named.to, "node1.device0");
        named.from_place = fields.place("from");
        named.to_place = fields.place("to");
        fields.duration("at", Need::optional, named.flow.at, any_duration);
        fields.has("rate") ? read_stream(fields, named.flow) : read_messages(fields, named.flow);
        if (has_from && has_to) flows.push_back(std::move(named));
    }
    return flows;
}

std::vector<BackgroundFlow> look_up(const std::vector<NamedFlow>& flows, const Graph& graph,
                                    Report& report) {
    std::vector<BackgroundFlow> found;
    for (const NamedFlow& named : flows) {
        const auto from = find_device(named.from, named.from_place, graph, report);
        const auto to = find_device(named.to, named.to_place, graph, report);
        if (!from || !to) continue;
        if (from == to) {
            report.error(
                named.to_place,
                fmt::format("a flow from {} to itself; name another device", in_quotes(named.to)));
            continue;
        }
        found.push_back(named.flow);
        found.back().from = *from;
        found.back().to = *to;
    }
    return found;
}

}  // namespace fourfold
