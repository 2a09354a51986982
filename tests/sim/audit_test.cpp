#include "sim/audit.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/network.hpp"

namespace fourfold {
namespace {

// Task 0: 10 us of compute on a; 1 and 2: then a message of 25,000 B (1 us + 5 us) to b; 3 and 4:
// an all-reduce of both.
struct Example {
    Example() : network("a -- b: 25 GB/s, 5 us") {
        const StreamId a = network.stream("a"), b = network.stream("b");
        network.draft.compute(a, 10_us);
        network.message(a, b, {25'000});
        const GroupId group = network.transfers.add_group({DeviceId{0}, DeviceId{1}});
        const auto transfer =
            network.transfers.collective(group, CollectiveKind::all_reduce, {50'000});
        const CollectiveId call = network.draft.add_collective(*transfer);
        network.draft.part(a, call, 0);
        network.draft.part(b, call, 1);
    }

    using Falsify = std::function<void(Timeline&)>;
    std::string faults(LinkModel links, const Falsify& falsify) {
        Timeline timeline = network.run(links);
        falsify(timeline);
        std::string text;
        for (const std::string& fault :
             audit(network.graph, network.program(), timeline, {.links = links})) {
            text += fault + "\n";
        }
        return text;
    }

    Network network;
};

constexpr TaskId compute{0}, send{1}, receive{2}, part_a{3}, part_b{4};

TEST_CASE("an honest timeline has no fault") {
    Example example;
    CHECK(example.faults(LinkModel::flows, [](Timeline&) {}) == "");
    CHECK(example.faults(LinkModel::messages, [](Timeline&) {}) == "");
}

TEST_CASE("a task that is too short or too early is found") {
    Example example;
    CHECK(example.faults(LinkModel::flows, [](Timeline& t) { t.end[compute] -= 1_ps; }) ==
          "compute 0 takes 9999999 instead of 10000000\n"
          "send 1 begins at 10000000 ps, ready at 9999999 ps\n");
    CHECK(example.faults(LinkModel::flows,
                         [](Timeline& t) {
                             t.begin[compute] += 1_ps;
                             t.end[compute] += 1_ps;
                         }) ==
          "compute 0 begins at 1 ps, ready at 0 ps\n"
          "send 1 begins at 10000000 ps, ready at 10000001 ps\n"
          "task 1 overtakes the one before it in its stream\n");
    CHECK(example.faults(LinkModel::messages, [](Timeline& t) { t.end[receive] -= 1_ps; }) ==
          "message 2 arrives 5999999 ps after its send began, faster than alone\n"
          "part 4 begins at 16000000 ps, ready at 15999999 ps\n");
    CHECK(example.faults(LinkModel::flows, [](Timeline& t) { t.finish -= 1_ps; }) ==
          "task 3 ends after the finish\ntask 4 ends after the finish\n");
}

TEST_CASE("a collective that is faster than alone, or whose parts end apart, is found") {
    // It takes 2 (25,000 B / 25 GB/s + 5 us) = 12 us from 16 us on.
    Example example;
    CHECK(example.faults(LinkModel::flows, [](Timeline& t) { t.end[part_a] -= 1_ps; }) ==
          "parts of collective 0 end apart\n");
    CHECK(example.faults(LinkModel::flows, [](Timeline& t) {
        t.end[part_a] -= 1_ps;
        t.end[part_b] -= 1_ps;
    }) == "collective 0 takes 11999999 ps, less than alone\n");
    CHECK(example.faults(LinkModel::messages, [](Timeline& t) {
        t.end[part_b] = t.begin[part_b] + 1_us;
    }) == "part 4 takes 1000000 ps, its messages alone 2000000 ps\n");
    CHECK(example.faults(LinkModel::flows, [](Timeline& t) {
        t.started[CollectiveId{0}] -= 1_ps;
    }) == "collective 0 starts before its last member\n");
}

TEST_CASE("bytes that vanish are found") {
    Example example;
    const auto vanish = [](Timeline& t) { t.carried[LinkId{0}] = t.carried[LinkId{0}] - 1_B; };
    CHECK(example.faults(LinkModel::flows, vanish) ==
          "link 0 carried 74999 B instead of 75000 B\n");
    CHECK(example.faults(LinkModel::messages, vanish) ==
          "link 0 carried 74999 B instead of 75000 B\n");
}

TEST_CASE("speeds beyond a link's rate, or that do not do the work, are found") {
    Example example;
    CHECK(example.faults(LinkModel::flows, [](Timeline& t) { t.rates.front().speed *= 2; }) ==
          "link 0 carries 2 of its rate\n"
          "a transfer ends having done 2 of its work\n");
    CHECK(example.faults(LinkModel::flows, [](Timeline& t) { t.rates.front().speed /= 2; }) ==
          "a transfer ends having done 0.5 of its work\n");
    CHECK(example.faults(LinkModel::flows, [](Timeline& t) { t.rates.pop_back(); }) ==
          "1 transfers never end\n");
}

TEST_CASE("of many faults the first twenty are told") {
    Network network("a -- b: 25 GB/s, 5 us");
    const StreamId stream = network.stream("a");
    for (int i = 0; i < 50; ++i) network.draft.compute(stream, 1_us);
    Timeline timeline = network.run(LinkModel::flows);
    for (const TaskId task : timeline.end.keys()) timeline.end[task] = timeline.begin[task];
    CHECK(audit(network.graph, network.program(), timeline, {.links = LinkModel::flows}).size() ==
          20);
}

}  // namespace
}  // namespace fourfold
