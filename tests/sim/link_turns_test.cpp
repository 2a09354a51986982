#include <doctest/doctest.h>

#include <random>
#include <string>

#include "tests/support/network.hpp"

namespace fourfold {
namespace {

SimulateOptions in_turns(Bytes quantum) {
    return {.links = LinkModel::messages, .quantum = quantum};
}

TEST_CASE("a small message waits for a quantum of a large one, not for all of it") {
    // 1 GiB takes 42.94967296 ms at 25 GB/s, 4 MiB take 167.77216 us, 1 KiB takes 40.96 ns. The
    // small one comes at 1 us and waits for the whole, or until 167.77216 us.
    const auto ends = [](const SimulateOptions& options) {
        Network network("a -> b: 25 GB/s, 5 us\nb -> a: 25 GB/s, 5 us");
        const auto large = network.message("a", "b", {std::int64_t{1} << 30});
        const StreamId late = network.stream("a");
        network.draft.compute(late, 1_us);
        const auto small = network.message(late, network.stream("b"), 1_KiB);
        const Timeline timeline = network.run(options);
        CHECK(timeline.messages == 2);
        CHECK(timeline.carried[network.link("a -> b")].value == (std::int64_t{1} << 30) + 1024);
        CHECK(timeline.busy[network.link("a -> b")] == 42'949'672'960_ps + 40'960_ps);
        return std::pair(ps(timeline.end[large.receive]), ps(timeline.end[small.receive]));
    };
    const std::int64_t latency = 5'000'000;
    CHECK(ends(in_turns({})) ==
          std::pair(42'949'672'960 + latency, 42'949'672'960 + 40'960 + latency));
    CHECK(ends(in_turns(4_MiB)) ==
          std::pair(42'949'672'960 + 40'960 + latency, 167'772'160 + 40'960 + latency));
}

TEST_CASE("those that wait pass a link in turns, in the order in which they came") {
    // Quanta of 25,000 B take 1 us. a has 3, b 2, c half of one:
    //   a b c a b a
    //   0 1 2 2.5 3.5 4.5 5.5
    Network network(
        "a -> sw: 25 GB/s, 0 us\nb -> sw: 25 GB/s, 0 us\nc -> sw: 25 GB/s, 0 us\n"
        "sw -> d: 25 GB/s, 0 us\nd -> a: 1 GB/s, 0 us\nd -> b: 1 GB/s, 0 us\nd -> c: 1 GB/s, 0 us");
    const auto a = network.message("a", "d", {75'000});
    const auto b = network.message("b", "d", {50'000});
    const auto c = network.message("c", "d", {12'500});
    const Timeline timeline = network.run(in_turns({25'000}));
    CHECK(ps(timeline.end[c.receive]) == 2'500'000);
    CHECK(ps(timeline.end[b.receive]) == 4'500'000);
    CHECK(ps(timeline.end[a.receive]) == 5'500'000);
    // Their own links are theirs alone.
    CHECK(ps(timeline.end[a.send]) == 3'000'000);
    CHECK(ps(timeline.end[b.send]) == 2'000'000);
    CHECK(ps(timeline.end[c.send]) == 500'000);
    CHECK(timeline.busy[network.link("sw -> d")] == 5'500'000_ps);
}

TEST_CASE("a lone message takes as long in turns as whole, to the picosecond") {
    std::mt19937_64 random(7);
    const auto up_to = [&](std::int64_t most) {
        return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
    };
    for (int run = 0; run < 300; ++run) {
        std::string text = "d -> a: 1 GB/s, 0 us\n";
        const char* hops[] = {"a -> sw0", "sw0 -> sw1", "sw1 -> sw2", "sw2 -> d"};
        const std::int64_t rate = up_to(50'000'000'000);
        for (const char* hop : hops) {
            // Often nearly alike: there rounding could tell.
            const std::int64_t own = run % 2 == 0 ? up_to(50'000'000'000) : rate + up_to(30) - 1;
            text += std::string(hop) + ": " + std::to_string(own) + " B/s, " +
                    std::to_string(up_to(9'000)) + " ns\n";
        }
        CAPTURE(text);
        const Bytes bytes{up_to(5'000'000) - 1};
        CAPTURE(bytes.value);
        const auto times = [&](const SimulateOptions& options) {
            Network network(text);
            const auto message = network.message("a", "d", bytes);
            const Timeline timeline = network.run(options);
            return std::pair(ps(timeline.end[message.send]), ps(timeline.end[message.receive]));
        };
        CHECK(times(in_turns({1'024 + up_to(100'000)})) == times(in_turns({})));
    }
}

TEST_CASE("collectives in turns are audited, and one on idle links takes as long as whole") {
    for (const char* algorithm : {"ring", "tree", "direct", "central"}) {
        CAPTURE(algorithm);
        const auto finish = [&](const SimulateOptions& options, int calls) {
            Network network(
                "a -- sw: 25 GB/s, 1 us\nb -- sw: 25 GB/s, 1 us\nc -- sw: 25 GB/s, 1 us\n"
                "d -- sw: 25 GB/s, 1 us\ne -- sw: 25 GB/s, 1 us");
            Transfers transfers(network.routes, network.draft, *find_algorithm(algorithm), {}, {});
            const std::vector<DeviceId> members{{0}, {1}, {2}, {3}, {4}};
            const GroupId group = transfers.add_group(members);
            for (int call = 0; call < calls; ++call) {
                const auto transfer =
                    transfers.collective(group, CollectiveKind::all_reduce, {3'333'333});
                const CollectiveId id = network.draft.add_collective(*transfer);
                for (const DeviceId member : members) {
                    network.draft.part(network.draft.add_stream(member, 0), id, member.value);
                }
            }
            return ps(network.run(options).finish);
        };
        finish(in_turns(64_KiB), 3);
        if (std::string(algorithm) == "ring") {
            CHECK(finish(in_turns(64_KiB), 1) == finish(in_turns({}), 1));
        }
    }
}

TEST_CASE("a quantum is nothing to flows") {
    const auto finish = [](Bytes quantum) {
        Network network("a -- b: 25 GB/s, 5 us");
        network.message("a", "b", 64_MiB);
        network.message("a", "b", 1_MiB);
        return ps(network.run({.links = LinkModel::flows, .quantum = quantum}).finish);
    };
    CHECK(finish(4_MiB) == finish({}));
}

TEST_CASE("a random load in turns is done when the whole messages would be") {
    // One link is the bottleneck of all: it rests only while nothing waits, whatever the order.
    std::mt19937_64 random(11);
    for (int run = 0; run < 50; ++run) {
        const auto finish = [&, seed = random()](const SimulateOptions& options) {
            std::mt19937_64 sizes(seed);
            Network network(
                "a -> sw: 25 GB/s, 0 us\nb -> sw: 25 GB/s, 0 us\nc -> sw: 25 GB/s, 0 us\n"
                "sw -> d: 2 GB/s, 0 us\nd -> a: 1 GB/s, 0 us\nd -> b: 1 GB/s, 0 us\n"
                "d -> c: 1 GB/s, 0 us");
            for (int i = 0; i < 30; ++i) {
                const char* from[] = {"a", "b", "c"};
                const StreamId stream = network.stream(from[i % 3]);
                network.draft.compute(stream, Duration(sizes() % 300) * 1'000'000);
                // Whole picoseconds at 2 GB/s.
                const Bytes bytes{static_cast<std::int64_t>(sizes() % 100'000) * 20};
                network.message(stream, network.stream("d"), bytes);
            }
            return ps(network.run(options).finish);
        };
        CHECK(finish(in_turns({25'000})) == finish(in_turns({})));
    }
}

}  // namespace
}  // namespace fourfold
