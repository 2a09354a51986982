#include "sim/courses.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/training.hpp"
#include "workloads/transfers.hpp"

namespace fourfold {
namespace {

// Whether some calls were held; all else must be as when each message is simulated.
bool check_held(const Graph& graph, const Program& program) {
    const Timeline held = run_audited(graph, program, LinkModel::messages);
    const Timeline each =
        run_audited(graph, program, {.links = LinkModel::messages, .each_message = true});
    CHECK(to_text(held, program) == to_text(each, program));
    CHECK(std::ranges::equal(held.started, each.started));
    CHECK(std::ranges::equal(held.carried, each.carried));
    CHECK(std::ranges::equal(held.busy, each.busy));
    CHECK(held.messages == each.messages);
    CHECK(held.events <= each.events);
    return held.events < each.events;
}

TEST_CASE("steps whose tensor groups are held are as when each message is simulated") {
    const struct {
        int tensor, pipeline, data;
        std::uint32_t slow;  // device; 16: none
        bool held;
    } cases[] = {
        {4, 2, 2, 16, true},   // each group has a node
        {4, 2, 2, 5, true},    // one member is late to all its calls
        {2, 2, 4, 16, false},  // data ranks in the node send through the same ports, whenever
        {2, 8, 1, 16, false},  // pipeline ranks, too, by messages
    };
    for (const auto& [tensor, pipeline, data, slow, held] : cases) {
        CAPTURE(tensor);
        CAPTURE(pipeline);
        TrainingStep step = step_of(gpt(8, 512, 8, 1024, 128));
        step.split.tensor = tensor;
        step.split.pipeline = pipeline;
        step.split.data = data;
        step.node.collective_start = 50_us;  // members that are done early lose it again
        if (slow < 16) step.slow_devices.push_back({.device = slow, .factor = 1.3});
        set_micro_batches(step, 8);
        const Graph graph = cluster(4, 4);
        const auto lowered = lower(step, graph);
        REQUIRE(lowered);
        CHECK(check_held(graph, lowered->program) == held);
    }
}

/// Calls of 1 MiB by all devices of a node, which take `pauses` of their own before each.
struct Calls {
    explicit Calls(std::string_view algorithm, CollectiveKind kind, Duration start = {})
        : transfers(routes, draft, *find_algorithm(algorithm), {.collective_start = start}, {}) {
        for (const DeviceId device : ids<DeviceId>(graph.devices().size())) {
            members.push_back(device);
            streams.push_back(draft.add_stream(device, 0));
        }
        transfer = *transfers.collective(transfers.add_group(members), kind, 1_MiB);
    }
    void call(const std::vector<Duration>& pauses) {
        const CollectiveId id = draft.add_collective(transfer);
        for (std::uint32_t member = 0; member < members.size(); ++member) {
            draft.compute(streams[member], pauses[member]);
            draft.part(streams[member], id, member);
        }
    }
    Program sealed() {
        Result<Program> program = seal(std::move(draft));
        REQUIRE(program.has_value());
        return std::move(*program);
    }

    Graph graph = cluster(1, 4);
    Routes routes{graph};
    ProgramDraft draft;
    Transfers transfers;
    std::vector<DeviceId> members;
    std::vector<StreamId> streams;
    TransferId transfer;
};

TEST_CASE("calls that begin alike are held, and those that meet the one before are not") {
    const std::vector<Duration> at_once(4, 10_us), late{10_us, 10_us, 15_us, 10_us}, none(4);
    {
        Calls calls("ring", CollectiveKind::all_reduce, 5_us);
        for (int i = 0; i < 6; ++i) calls.call(i % 3 == 0 ? late : at_once);
        CHECK(check_held(calls.graph, calls.sealed()));
    }
    {
        // Members that are done early go on at once: the run is void and begins anew.
        Calls calls("ring", CollectiveKind::all_reduce);
        calls.call(late);
        for (int i = 0; i < 6; ++i) calls.call(none);
        CHECK_FALSE(check_held(calls.graph, calls.sealed()));
    }
}

TEST_CASE("a call that some members of a waiting one do in between is met by its messages") {
    const Graph graph = cluster(1, 4);
    Routes routes{graph};
    ProgramDraft draft;
    Transfers transfers(routes, draft, *find_algorithm("ring"), {}, {});
    std::vector<StreamId> streams;
    for (std::uint32_t i = 0; i < 3; ++i) streams.push_back(draft.add_stream({i}, 0));
    const auto all_reduce = [&](std::vector<DeviceId> members) {
        return *transfers.collective(transfers.add_group(std::move(members)),
                                     CollectiveKind::all_reduce, 8_MiB);
    };
    const TransferId two = all_reduce({{0}, {1}}), three = all_reduce({{0}, {1}, {2}});
    for (int i = 0; i < 40; ++i) {
        // Device 2 begins, 0 and 1 first have their own.
        const CollectiveId inner = draft.add_collective(two), outer = draft.add_collective(three);
        for (std::uint32_t member = 0; member < 2; ++member) {
            draft.compute(streams[member], 1'001_us);
            draft.part(streams[member], inner, member);
        }
        draft.compute(streams[2], 1'000_us);
        for (std::uint32_t member = 0; member < 3; ++member) {
            draft.part(streams[member], outer, member);
        }
    }
    Result<Program> program = seal(std::move(draft));
    REQUIRE(program.has_value());
    CHECK_FALSE(check_held(graph, *program));
}

TEST_CASE("no member of a collective but a broadcast is done before all have begun") {
    for (const Algorithm* algorithm : algorithms()) {
        for (const std::string_view name : collective_kinds()) {
            CAPTURE(algorithm->name);
            CAPTURE(name);
            const CollectiveKind kind = *find_collective_kind(name);
            if (algorithm->refuse({.kind = kind, .members = 4, .per_node = 4, .bytes = 1_MiB})) {
                continue;
            }
            for (std::uint32_t last = 0; last < 4; ++last) {
                Calls calls(algorithm->name, kind);
                std::vector<Duration> pauses(4, 1_us);
                pauses[last] = 1'000'000_us;
                calls.call(pauses);
                CHECK(calls.draft.transfer(calls.transfer).meets ==
                      (kind != CollectiveKind::broadcast));
                const Program program = calls.sealed();
                const Timeline timeline = run_audited(calls.graph, program, LinkModel::messages);
                if (kind == CollectiveKind::broadcast) continue;
                for (const TaskId part : program.parts(CollectiveId{0})) {
                    CHECK(timeline.end[part] >= Time(pauses[last]));
                }
            }
        }
    }
}

}  // namespace
}  // namespace fourfold
