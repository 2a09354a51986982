#include "results/trace.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "sim/audit.hpp"
#include "tests/support/network.hpp"
#include "topology/cluster.hpp"

namespace fourfold {
namespace {

using nlohmann::json;

std::string text_of(const Graph& graph, const Lowered& lowered, const Timeline& timeline,
                    const TraceOptions& options = {}) {
    std::ostringstream out;
    write_trace(out, graph, lowered, timeline, options);
    return out.str();
}

// Times of small traces are exact in doubles; ns are whole.
std::int64_t ns(const json& microseconds) {
    return std::llround(microseconds.get<double>() * 1000);
}

struct Span {
    std::int64_t begin, end;
};
using LaneKey = std::pair<std::uint32_t, std::uint32_t>;

// All kernels, by (rank, thread), in the order of the file.
std::map<LaneKey, std::vector<Span>> lanes_of(const json& trace) {
    std::map<LaneKey, std::vector<Span>> lanes;
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] != "X" || event["cat"] != "kernel") continue;
        const std::int64_t begin = ns(event["ts"]);
        lanes[{event["pid"], event["tid"]}].push_back({begin, begin + ns(event["dur"])});
    }
    return lanes;
}

void check_lanes(const json& trace) {
    std::size_t overlaps = 0;
    for (const auto& [lane, spans] : lanes_of(trace)) {
        for (std::size_t i = 1; i < spans.size(); ++i) {
            overlaps += spans[i].begin < spans[i - 1].end ? 1 : 0;
        }
    }
    CHECK(overlaps == 0);
}

// Every flow has one begin and one end, in that order in time, each within a slice with a length.
std::size_t check_flows(const json& trace) {
    const auto lanes = lanes_of(trace);
    using Key = std::tuple<std::uint64_t, std::string, std::string>;
    std::map<Key, std::int64_t> begins, ends;
    std::size_t outside = 0, twice = 0;
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] != "s" && event["ph"] != "f") continue;
        const std::int64_t at = ns(event["ts"]);
        const auto& spans = lanes.at({event["pid"], event["tid"]});
        const bool inside = std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
            return span.begin <= at && at < span.end;
        });
        outside += inside ? 0 : 1;
        if (event["ph"] == "f") CHECK(event["bp"] == "e");
        auto& found = event["ph"] == "s" ? begins : ends;
        twice += found.emplace(Key{event["id"], event["cat"], event["name"]}, at).second ? 0 : 1;
    }
    CHECK(outside == 0);
    CHECK(twice == 0);
    CHECK(begins.size() == ends.size());
    for (const auto& [key, at] : begins) {
        REQUIRE(ends.contains(key));
        CHECK(ends[key] >= at);
    }
    return begins.size();
}

const json& task_of(const json& trace, std::uint32_t task) {
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] == "X" && event["cat"] == "kernel" &&
            event["args"]["correlation"] == task) {
            return event;
        }
    }
    FAIL("no event of task " << task);
    return trace;
}

// Each task's kernel begins and ends at the timeline's nanoseconds.
void check_spans(const json& trace, const Lowered& lowered, const Timeline& timeline) {
    std::size_t kernels = 0, wrong = 0;
    std::map<StreamId, std::int64_t> free_at;
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] != "X" || event["cat"] != "kernel") continue;
        const TaskId task{event["args"]["correlation"].get<std::uint32_t>()};
        CHECK(task.value == kernels);
        ++kernels;
        const std::int64_t end = ps(timeline.end[task]);
        std::int64_t& free = free_at[lowered.program.stream(task)];
        const std::int64_t begin = std::max(ps(timeline.begin[task]), free);
        free = end;
        wrong += event["args"]["begin_ps"] == begin && event["args"]["end_ps"] == end ? 0 : 1;
        wrong += ns(event["ts"]) == begin / 1000 ? 0 : 1;
        wrong += ns(event["ts"]) + ns(event["dur"]) == end / 1000 ? 0 : 1;
        wrong += event["pid"] == lowered.program.device(task).value ? 0 : 1;
    }
    CHECK(kernels == lowered.program.tasks());
    CHECK(wrong == 0);
}

// ---- By hand: a computes 1.2345 us, then sends 25,000 B (1 us, 5 us) to b, then both reduce.

struct ByHand {
    ByHand() : network("a -- b: 25 GB/s, 5 us") {
        const StreamId a = network.stream("a"), b = network.stream("b");
        const StreamId sends =
            network.draft.add_stream(DeviceId{0}, static_cast<std::uint8_t>(Lane::send_forward));
        const TaskId work = network.draft.compute(a, 1'234'567_ps);
        const TransferId message = network.transfers.message(DeviceId{0}, DeviceId{1}, {25'000});
        const TaskId send = network.draft.send(sends, message, std::span(&work, 1));
        const TaskId receive = network.draft.receive(b);
        network.draft.connect(send, receive, {25'000});
        const GroupId group = network.transfers.add_group({DeviceId{0}, DeviceId{1}});
        const auto transfer =
            network.transfers.collective(group, CollectiveKind::all_reduce, {50'000});
        REQUIRE(transfer.has_value());
        for (int call = 0; call < 2; ++call) {
            const CollectiveId id = network.draft.add_collective(*transfer);
            network.draft.part(a, id, 0);
            network.draft.part(b, id, 1);
        }
        lowered.program = network.program();
        const Label label{.axis = Axis::compute,
                          .pass = Pass::forward,
                          .stage = 1,
                          .micro_batch = 3,
                          .awaited = true};
        lowered.labels = IdVector<TaskId, Label>(lowered.program.tasks(), label);
        for (std::uint32_t task = 1; task < 3; ++task) {
            lowered.labels[TaskId{task}].axis = Axis::pipeline;
        }
        for (std::uint32_t task = 3; task < 7; ++task) {
            lowered.labels[TaskId{task}].axis = Axis::tensor;
            lowered.labels[TaskId{task}].micro_batch = Label::none;
        }
        timeline = network.run(LinkModel::flows);
    }

    Network network;
    Lowered lowered;
    Timeline timeline;
};

TEST_CASE("a small trace by hand, line by line") {
    ByHand example;
    const std::string text =
        text_of(example.network.graph, example.lowered, example.timeline, {.name = "by hand"});
    // 1,234,567 ps is 1.234 us. The send ends 1 us later; its first byte is at b 5 us after it
    // began.
    CHECK(text.find("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"forward mb 3 stage 1\",\"pid\":0,"
                    "\"tid\":1,\"ts\":0.000,\"dur\":1.234,\"args\":{\"stream\":1,\"device\":0,"
                    "\"correlation\":0,\"begin_ps\":0,\"end_ps\":1234567,\"axis\":\"compute\","
                    "\"pass\":\"forward\",\"stage\":1,\"micro_batch\":3}},\n") !=
          std::string::npos);
    CHECK(text.find("{\"ph\":\"s\",\"id\":1,\"cat\":\"message\",\"name\":\"message\",\"pid\":0,"
                    "\"tid\":5,\"ts\":1.234},\n") != std::string::npos);
    CHECK(text.find("{\"ph\":\"f\",\"id\":1,\"cat\":\"message\",\"name\":\"message\",\"pid\":1,"
                    "\"tid\":1,\"ts\":6.234,\"bp\":\"e\"},\n") != std::string::npos);
    CHECK(text.find("\"ts\":1.234,\"dur\":1.000,") != std::string::npos);
}

TEST_CASE("a small trace parses back to the same spans, lanes and flows") {
    ByHand example;
    const json trace =
        json::parse(text_of(example.network.graph, example.lowered, example.timeline));
    check_spans(trace, example.lowered, example.timeline);
    check_lanes(trace);
    CHECK(check_flows(trace) == 1);

    CHECK(trace["baseTimeNanoseconds"] == 0);
    CHECK(trace["distributedInfo"]["backend"] == "nccl");
    CHECK(trace["distributedInfo"]["world_size"] == 2);
    CHECK(trace["distributedInfo"]["pg_count"] == 1);
    CHECK(trace["distributedInfo"]["pg_config"][0]["ranks"] == json({0, 1}));
    CHECK(trace["deviceProperties"].size() == 2);
}

TEST_CASE("parts of a collective carry what a real one does, and how long they waited") {
    ByHand example;
    const json trace =
        json::parse(text_of(example.network.graph, example.lowered, example.timeline));
    const json& first = task_of(trace, 3);
    CHECK(first["name"] == "ncclDevKernel_AllReduce_Sum_bf16_RING_LL tensor forward stage 1");
    const json& args = first["args"];
    CHECK(args["Collective name"] == "allreduce");
    CHECK(args["In msg nelems"] == 25'000);
    CHECK(args["Out msg nelems"] == 25'000);
    CHECK(args["Group size"] == 2);
    CHECK(args["dtype"] == "BFloat16");
    CHECK(args["Process Group Name"] == "0");
    CHECK(args["Process Group Ranks"] == "[0, 1]");
    // a arrives at 1,234,567 ps, b when its message is there, 6 us later.
    CHECK(args["wait_ps"] == 6'000'000);
    CHECK(task_of(trace, 4)["args"]["wait_ps"] == 0);
    CHECK(task_of(trace, 3)["args"]["Seq"] == 1);
    CHECK(task_of(trace, 4)["args"]["Seq"] == 1);
    CHECK(task_of(trace, 5)["args"]["Seq"] == 2);
    CHECK(task_of(trace, 6)["args"]["Seq"] == 2);

    const json& send = task_of(trace, 1)["args"];
    CHECK(send["Collective name"] == "send");
    CHECK(send["Src Rank"] == 0);
    CHECK(send["Dst Rank"] == 1);
    CHECK(send["In msg nelems"] == 12'500);
}

TEST_CASE("names may hold any character") {
    GraphDraft draft;
    const VertexId a = draft.add_device("a \"quoted\"\\\n\t\x01 Größe", 0);
    draft.add_cable(a, draft.add_device("b", 1),
                    {.bandwidth = 25_GBps, .latency = 5_us, .efficiency = 1.0});
    const auto graph = seal(std::move(draft));
    REQUIRE(graph.has_value());
    ProgramDraft program;
    program.compute(program.add_stream(DeviceId{0}, 200), 1_us);
    Lowered lowered;
    lowered.program = *seal(std::move(program));
    lowered.labels.push_back({});
    const Timeline timeline = run_audited(*graph, lowered.program, LinkModel::flows);
    TraceOptions options{.name = "\"\\\x1f"};
    options.device.name = "A100 \"80GB\"";
    const json trace = json::parse(text_of(*graph, lowered, timeline, options));
    CHECK(trace["traceName"] == "\"\\\x1f");
    CHECK(trace["deviceProperties"][0]["name"] == "A100 \"80GB\"");
    std::set<std::string> names;
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] == "M" && event["args"].contains("name"))
            names.insert(event["args"]["name"]);
    }
    CHECK(names ==
          std::set<std::string>{"rank 0 (a \"quoted\"\\\n\t\x01 Größe)", "step", "stream 200"});
}

TEST_CASE("tasks shorter than a nanosecond have no length, and no flow") {
    Network network("a -- b: 25 GB/s, 5 us");
    network.message("a", "b", {10});  // 400 ps
    Lowered lowered;
    lowered.program = network.program();
    lowered.labels = IdVector<TaskId, Label>(2);
    const Timeline timeline = network.run(LinkModel::flows);
    const json trace = json::parse(text_of(network.graph, lowered, timeline));
    CHECK(task_of(trace, 0)["dur"] == 0.0);
    CHECK(check_flows(trace) == 0);
    check_spans(trace, lowered, timeline);
}

TEST_CASE("of large process groups a part shows 30 ranks, and the head has all") {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "d" + std::to_string(i) + " -- sw: 25 GB/s, 5 us\n";
    Network network(text);
    std::vector<DeviceId> all;
    for (const DeviceId device : ids<DeviceId>(40)) all.push_back(device);
    const auto transfer = network.transfers.collective(network.transfers.add_group(all),
                                                       CollectiveKind::all_gather, 4_MiB);
    REQUIRE(transfer.has_value());
    const CollectiveId id = network.draft.add_collective(*transfer);
    for (const DeviceId device : all) {
        network.draft.part(network.draft.add_stream(device, 2), id, device.value);
    }
    Lowered lowered;
    lowered.program = network.program();
    lowered.labels = IdVector<TaskId, Label>(40);
    const Timeline timeline = network.run(LinkModel::flows);
    const json trace = json::parse(text_of(network.graph, lowered, timeline));
    const json& args = task_of(trace, 7)["args"];
    const std::string ranks = args["Process Group Ranks"];
    CHECK(ranks.ends_with(", 28, 29, ...]"));
    CHECK(trace["distributedInfo"]["pg_config"][0]["ranks"].size() == 40);
    CHECK(args["Collective name"] == "_allgather_base");
    CHECK(args["Out msg nelems"] == 2'097'152);
    CHECK(args["In msg nelems"] == 52'429);  // a fortieth, rounded up
}

// ---- A training step: tensor 2, pipeline 2, data 2

TrainingStep small_step() {
    TrainingStep step;
    step.model.layers = 4;
    step.model.hidden = 1024;
    step.model.heads = step.model.kv_heads = 16;
    step.model.head_dim = 64;
    step.model.ffn = 4096;
    step.model.vocab = 32'000;
    step.model.sequence = 512;
    step.device.name = "A100";
    step.device.peak = 312e12;
    step.device.memory_bandwidth = 2.039e12;
    step.device.memory = {80'000'000'000};
    step.device.multiprocessors = 108;
    step.split.tensor = step.split.pipeline = step.split.data = 2;
    step.global_batch = 8;
    step.schedule = *find_schedule("1f1b");
    return step;
}

TEST_CASE("the trace of a training step parses back to its spans, lanes, flows and groups") {
    const TrainingStep step = small_step();
    const Fabric node{.shape = *find_shape("switch"),
                      .link = {.bandwidth = 300_GBps, .latency = 1_us, .efficiency = 1.0},
                      .parameters = {}};
    const Fabric fabric{.shape = *find_shape("switch"),
                        .link = {.bandwidth = 25_GBps, .latency = 2_us, .efficiency = 1.0},
                        .parameters = {}};
    const auto draft =
        build_cluster({.nodes = 2, .devices_per_node = 4, .node = node, .fabric = fabric});
    REQUIRE(draft.has_value());
    const auto graph = seal(*draft);
    REQUIRE(graph.has_value());
    REQUIRE(check(step, 8).has_value());
    const auto lowered = lower(step, *graph);
    REQUIRE_MESSAGE(lowered.has_value(), (lowered ? "" : lowered.error().what));
    for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
        const Timeline timeline = run_audited(*graph, lowered->program, links);
        const json trace = json::parse(
            text_of(*graph, *lowered, timeline, {.name = "2 x 2 x 2", .device = step.device}));
        check_spans(trace, *lowered, timeline);
        check_lanes(trace);
        // 4 micro-batches, there and back, in each of 4 pipelines.
        CHECK(check_flows(trace) == 4 * 2 * 4);

        // Calls of one group: the same (group, Seq) on all its ranks, once each, with equal names.
        std::map<std::pair<std::string, std::uint64_t>, std::set<std::uint32_t>> members;
        std::map<std::pair<std::string, std::uint64_t>, std::set<std::string>> names;
        std::size_t parts = 0;
        for (const json& event : trace["traceEvents"]) {
            if (event["ph"] != "X" || event["cat"] != "kernel") continue;
            const json& args = event["args"];
            if (!args.contains("Seq")) continue;
            ++parts;
            const std::pair key{args["Process Group Name"].get<std::string>(),
                                args["Seq"].get<std::uint64_t>()};
            members[key].insert(event["pid"].get<std::uint32_t>());
            names[key].insert(event["name"].get<std::string>());
            CHECK(args["wait_ps"] >= 0);
        }
        std::size_t expected = 0;
        for (const auto& [key, ranks] : members) {
            const json& group = trace["distributedInfo"]["pg_config"][std::stoul(key.first)];
            CHECK(json(ranks) == group["ranks"]);
            expected += ranks.size();
        }
        CHECK(parts == expected);
        CHECK(parts > 100);

        std::size_t steps = 0;
        for (const json& event : trace["traceEvents"]) {
            if (event["ph"] == "X" && event["cat"] == "user_annotation") {
                ++steps;
                CHECK(event["name"] == "ProfilerStep#0");
                CHECK(ns(event["dur"]) == ps(timeline.finish) / 1000);
            }
        }
        CHECK(steps == 8);
    }
}

}  // namespace
}  // namespace fourfold
