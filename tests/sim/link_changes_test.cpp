#include "sim/link_changes.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/network.hpp"
#include "tests/support/sharing.hpp"

namespace fourfold {
namespace {

constexpr LinkModel both[] = {LinkModel::flows, LinkModel::messages};

Time at(Duration duration) { return Time(duration); }

TEST_CASE("what a link still has to carry when it slows down takes longer") {
    // 25 MB at 25 GB/s take 1 ms. At 0.4 ms 0.6 ms are left, at half the rate 1.2 ms.
    for (const Bytes quantum : {Bytes{}, 1_MiB}) {
        for (const LinkModel links : both) {
            Network network("a -> b: 25 GB/s, 5 us\nb -> a: 25 GB/s, 5 us");
            const auto message = network.message("a", "b", {25'000'000});
            const LinkChange change{network.link("a -> b"), at(400_us), 0.5};
            const Timeline timeline =
                network.run({.links = links, .changes = std::span(&change, 1), .quantum = quantum});
            CHECK(ps(timeline.end[message.send]) == 1'600'000'000);
            CHECK(ps(timeline.end[message.receive]) == 1'605'000'000);
        }
    }
}

TEST_CASE("the link that slows down is the one that is named, whichever are in use") {
    // 25 MB from c to d, slowed as above; nothing else moves, and no link of a and b counts.
    for (const LinkModel links : both) {
        Network network(
            "a -> b: 25 GB/s, 0 us\nb -> a: 25 GB/s, 0 us\nb -- c: 25 GB/s, 0 us\n"
            "c -> d: 25 GB/s, 0 us\nd -> c: 25 GB/s, 0 us");
        const auto message = network.message("c", "d", {25'000'000});
        const std::vector<LinkChange> changes{{network.link("c -> d"), at(400_us), 0.5},
                                              {network.link("a -> b"), at(100_us), 0.1}};
        const Timeline timeline = network.run({.links = links, .changes = changes});
        CHECK(ps(timeline.end[message.send]) == 1'600'000'000);
    }
}

TEST_CASE("those that share a link when it slows down share what is left") {
    // Two of 12.5 MB: 1 ms in all, at 0.4 ms each has 7.5 MB left, of 12.5 GB/s together 1.2 ms.
    Network network("a -> b: 25 GB/s, 0 us\nb -> a: 25 GB/s, 0 us");
    const auto first = network.message("a", "b", {12'500'000});
    const auto second = network.message("a", "b", {12'500'000});
    const LinkChange change{network.link("a -> b"), at(400_us), 0.5};
    const Timeline timeline =
        network.run({.links = LinkModel::flows, .changes = std::span(&change, 1)});
    CHECK(ps(timeline.end[first.send]) == 1'600'000'000);
    CHECK(ps(timeline.end[second.send]) == 1'600'000'000);
}

TEST_CASE("a collective whose link slows down on the way ends between the two") {
    for (const LinkModel links : both) {
        const auto finish = [&](std::optional<Duration> when) {
            Network network(
                "a -> b: 25 GB/s, 5 us\nb -> c: 25 GB/s, 5 us\nc -> d: 25 GB/s, 5 us\n"
                "d -> a: 25 GB/s, 5 us");
            Transfers transfers(network.routes, network.draft, *find_algorithm("ring"), {}, {});
            const std::vector<DeviceId> members{{0}, {1}, {2}, {3}};
            const GroupId group = transfers.add_group(members);
            const auto transfer =
                transfers.collective(group, CollectiveKind::all_reduce, {25'000'000});
            const CollectiveId id = network.draft.add_collective(*transfer);
            for (const DeviceId member : members) {
                network.draft.part(network.draft.add_stream(member, 0), id, member.value);
            }
            std::vector<LinkChange> changes;
            if (when) changes.push_back({network.link("b -> c"), at(*when), 0.5});
            return ps(network.run({.links = links, .changes = changes}).finish);
        };
        const std::int64_t fast = finish(std::nullopt);
        CHECK(finish(0_us) > fast);
        CHECK(finish(500_us) > fast);
        CHECK(finish(500_us) < finish(0_us));
        CHECK(finish(9_ms) == fast);  // and the clock does not run on to it
    }
}

constexpr const char* two_ways =
    "a -> sw0: 25 GB/s, 1 us\nsw0 -> b: 25 GB/s, 1 us\na -> sw1: 25 GB/s, 2 us\n"
    "sw1 -> b: 25 GB/s, 2 us\nb -> a: 25 GB/s, 1 us";

TEST_CASE("what waits for a link when it fails goes another way, what has begun arrives") {
    // 1 ms each. At 0.5 ms the second leaves: 0.5 + 1 ms and 4 us.
    Network network(two_ways);
    const auto first = network.message("a", "b", {25'000'000});
    const auto second = network.message("a", "b", {25'000'000});
    const LinkChange change{network.link("a -> sw0"), at(500_us), 0};
    const Timeline timeline =
        network.run({.links = LinkModel::messages, .changes = std::span(&change, 1)});
    CHECK(ps(timeline.end[first.receive]) == 1'002'000'000);
    CHECK(ps(timeline.end[second.receive]) == 1'504'000'000);
    CHECK(timeline.carried[network.link("a -> sw1")] == 25'000'000_B);
    CHECK(timeline.carried[network.link("a -> sw0")] == 25'000'000_B);
}

TEST_CASE("a message whose next link has failed goes on from where it is") {
    // Its head is at sw0 at 1 us, when the link to b has failed: back to a and over sw1. The tail
    // follows 1 ms after the head, which needs 1 + 1 + 2 + 2 us.
    Network network(std::string(two_ways) + "\nsw0 -> a: 25 GB/s, 1 us");
    const auto message = network.message("a", "b", {25'000'000});
    const LinkChange change{network.link("sw0 -> b"), at(500_ns), 0};
    const Timeline timeline =
        network.run({.links = LinkModel::messages, .changes = std::span(&change, 1)});
    CHECK(ps(timeline.end[message.receive]) == 1'006'000'000);
    CHECK(timeline.carried[network.link("sw0 -> a")] == 25'000'000_B);
}

TEST_CASE("a collective goes around a link that fails") {
    for (const char* algorithm : {"ring", "tree", "direct"}) {
        CAPTURE(algorithm);
        Network network(
            "a -- b: 25 GB/s, 5 us\nb -- c: 25 GB/s, 5 us\nc -- d: 25 GB/s, 5 us\n"
            "d -- a: 25 GB/s, 5 us");
        Transfers transfers(network.routes, network.draft, *find_algorithm(algorithm), {}, {});
        const std::vector<DeviceId> members{{0}, {1}, {2}, {3}};
        const GroupId group = transfers.add_group(members);
        const auto transfer = transfers.collective(group, CollectiveKind::all_reduce, {25'000'000});
        const CollectiveId id = network.draft.add_collective(*transfer);
        for (const DeviceId member : members) {
            network.draft.part(network.draft.add_stream(member, 0), id, member.value);
        }
        const LinkChange change{network.link("b -> c"), at(300_us), 0};
        const std::int64_t plain = ps(network.run(LinkModel::messages).finish);
        const Timeline timeline =
            network.run({.links = LinkModel::messages, .changes = std::span(&change, 1)});
        CHECK(ps(timeline.finish) > plain);
    }
}

TEST_CASE("without a route the run ends and says who is cut off") {
    Network network("a -> sw: 25 GB/s, 1 us\nsw -> b: 25 GB/s, 1 us\nb -> a: 25 GB/s, 1 us");
    network.message("a", "b", {25'000'000});
    network.message("a", "b", {25'000'000});
    const LinkChange change{network.link("sw -> b"), at(1_ms), 0};
    const auto timeline =
        simulate(network.graph, network.program(),
                 {.links = LinkModel::messages, .changes = std::span(&change, 1)});
    REQUIRE_FALSE(timeline);
    CHECK(timeline.error().what ==
          "the link sw -> b has failed, and no route is left from 'sw' to 'b' for a message of "
          "device 0");
}

TEST_CASE("the audit finds who is faster than a link that has slowed down") {
    Network network("a -> b: 25 GB/s, 5 us\nb -> a: 25 GB/s, 5 us");
    network.message("a", "b", {25'000'000});
    const SimulateOptions plain{.links = LinkModel::flows, .record_rates = true};
    const auto timeline = simulate(network.graph, network.program(), plain);
    REQUIRE(timeline);
    const LinkChange change{network.link("a -> b"), at(0_us), 0.5};
    SimulateOptions changed = plain;
    changed.changes = std::span(&change, 1);
    const std::vector<std::string> faults =
        audit(network.graph, network.program(), *timeline, changed);
    REQUIRE(faults.size() == 1);
    CHECK(faults.front() == "link 0 carries 2 of its rate");
}

TEST_CASE("the audit finds bytes that vanish where messages go around a failed link") {
    Network network(two_ways);
    network.message("a", "b", {25'000'000});
    const LinkChange change{network.link("a -> sw0"), at(0_us), 0};
    const SimulateOptions options{.links = LinkModel::messages, .changes = std::span(&change, 1)};
    auto timeline = simulate(network.graph, network.program(), options);
    REQUIRE(timeline);
    CHECK(audit(network.graph, network.program(), *timeline, options).empty());
    Bytes& carried = timeline->carried[network.link("sw1 -> b")];
    carried = carried - 1_B;
    const std::vector<std::string> faults =
        audit(network.graph, network.program(), *timeline, options);
    REQUIRE(faults.size() == 2);
    CHECK(faults.front() == "b keeps -1 B too many");
}

}  // namespace
}  // namespace fourfold
