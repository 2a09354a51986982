#pragma once

// Small networks and programs for tests, from text and in few words. Every run is audited.

#include <doctest/doctest.h>

#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "sim/audit.hpp"
#include "sim/simulate.hpp"
#include "workloads/transfers.hpp"

namespace fourfold {

/// a and b are joined to c and d by one trunk: 1e9 B alone take 40 ms. For graph_of.
inline constexpr const char* trunk = R"(
    a -- sw0: 25 GB/s, 0 us
    b -- sw0: 25 GB/s, 0 us
    sw0 -- sw1: 25 GB/s, 0 us
    sw1 -- c: 25 GB/s, 0 us
    sw1 -- d: 25 GB/s, 0 us
)";

/// "a -> b: 25 GB/s, 5 us" a line, or "a -- b: ..." for both directions. Names that begin with "sw"
/// are switches, others devices, numbered as they come.
inline Graph graph_of(const std::string& text, const Routing& routing = {}) {
    GraphDraft draft;
    draft.routing = routing;
    std::map<std::string, VertexId> vertices;
    const auto vertex = [&](const std::string& name) {
        const auto [entry, is_new] = vertices.try_emplace(name);
        if (is_new) {
            entry->second = name.starts_with("sw") ? draft.add_switch(name)
                                                   : draft.add_device(name, draft.devices);
        }
        return entry->second;
    };
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(':'), comma = line.find(',');
        if (colon == std::string::npos) continue;
        std::string from, arrow, to;
        std::istringstream(line.substr(0, colon)) >> from >> arrow >> to;
        const auto rate = parse_rate(line.substr(colon + 2, comma - colon - 2));
        const auto latency = parse_duration(line.substr(comma + 2));
        REQUIRE(rate.has_value());
        REQUIRE(latency.has_value());
        const LinkSpec spec{.bandwidth = *rate, .latency = *latency, .efficiency = 1.0};
        const VertexId a = vertex(from), b = vertex(to);
        if (arrow == "--") {
            draft.add_cable(a, b, spec);
        } else {
            draft.add_link(a, b, spec);
        }
    }
    Result<Graph> graph = seal(std::move(draft));
    REQUIRE_MESSAGE(graph.has_value(), (graph ? "" : graph.error().what));
    return std::move(*graph);
}

inline Timeline run_audited(const Graph& graph, const Program& program, SimulateOptions options) {
    options.record_rates = true;
    const Result<Timeline> timeline = simulate(graph, program, options);
    REQUIRE_MESSAGE(timeline.has_value(), (timeline ? "" : timeline.error().what));
    for (const std::string& fault : audit(graph, program, *timeline, options)) {
        FAIL_CHECK(fault);
    }
    return *timeline;
}
inline Timeline run_audited(const Graph& graph, const Program& program, LinkModel links) {
    return run_audited(graph, program, SimulateOptions{.links = links});
}

struct BackgroundTimes {
    Duration at{}, every{}, pace{};
};

/// A network and a program on it that is being written.
class Network {
  public:
    explicit Network(const std::string& text, const Routing& routing = {})
        : graph(graph_of(text, routing)),
          routes(graph),
          transfers(routes, draft, nullptr, {}, {}) {}

    [[nodiscard]] DeviceId device(std::string_view name) const {
        const auto found = graph.find(name);
        REQUIRE(found.has_value());
        return graph[*found].device;
    }
    [[nodiscard]] LinkId link(std::string_view name) const {
        for (const LinkId id : ids<LinkId>(graph.links().size())) {
            if (graph.name(id) == name) return id;
        }
        FAIL("no link " << name);
        return {};
    }

    struct Message {
        TaskId send, receive;
    };
    /// On streams of its own.
    Message message(std::string_view from, std::string_view to, Bytes bytes) {
        return message(stream(from), stream(to), bytes);
    }
    Message message(StreamId from, StreamId to, Bytes bytes) {
        const TransferId transfer = transfers.message(devices_.at(from), devices_.at(to), bytes);
        const Message made{draft.send(from, transfer), draft.receive(to)};
        draft.connect(made.send, made.receive, bytes);
        return made;
    }
    BackgroundId background(std::string_view from, std::string_view to, Bytes bytes,
                            const BackgroundTimes& times = {}) {
        const TransferId transfer =
            transfers.background(device(from), device(to), bytes, times.pace);
        return draft.add_background({transfer, Time(times.at), times.every});
    }
    StreamId stream(std::string_view name) {
        const StreamId made = draft.add_stream(device(name), 0);
        devices_[made] = device(name);
        return made;
    }

    const Program& program() {
        if (!sealed_) {
            Result<Program> made = seal(std::move(draft));
            REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().what));
            program_ = std::move(*made);
            sealed_ = true;
        }
        return program_;
    }
    Timeline run(LinkModel links) { return run_audited(graph, program(), links); }
    Timeline run(const SimulateOptions& options) { return run_audited(graph, program(), options); }

    Graph graph;
    Routes routes;
    ProgramDraft draft;
    Transfers transfers;

  private:
    std::map<StreamId, DeviceId> devices_;
    Program program_;
    bool sealed_ = false;
};

inline std::int64_t ps(Time time) { return time.time_since_epoch().count(); }

}  // namespace fourfold
