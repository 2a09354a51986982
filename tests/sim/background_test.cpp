// Traffic of others: it loads the links, and nobody waits for it.

#include <doctest/doctest.h>

#include <string>

#include "tests/support/network.hpp"

namespace fourfold {
namespace {

constexpr LinkModel both[] = {LinkModel::flows, LinkModel::messages};
constexpr std::int64_t ms = 1'000'000'000;

std::int64_t end(const Timeline& timeline, std::size_t passage) {
    return ps(timeline.passages.at(passage).end);
}
bool under_way(const Timeline& timeline, std::size_t passage) {
    return timeline.passages.at(passage).end == Time::max();
}

}  // namespace

TEST_CASE("a flow and one of the background share a trunk: 80 and 80 ms, or 60 and 40 ms") {
    // At 12.5 GB/s each, 1e9 B take 80 ms. 0.5e9 B take 40 ms, in which the other moves 0.5e9 B;
    // the rest takes 20 ms at full speed.
    Network equal(trunk);
    const auto one = equal.message("a", "c", {1'000'000'000});
    equal.background("b", "d", {1'000'000'000});
    const Timeline shared = equal.run(LinkModel::flows);
    CHECK(ps(shared.end[one.receive]) == 80 * ms);
    CHECK(end(shared, 0) == 80 * ms);
    CHECK(shared.carried[equal.link("sw0 -> sw1")] == Bytes{2'000'000'000});

    Network shorter(trunk);
    const auto two = shorter.message("a", "c", {1'000'000'000});
    shorter.background("b", "d", {500'000'000});
    const Timeline freed = shorter.run(LinkModel::flows);
    CHECK(ps(freed.end[two.receive]) == 60 * ms);
    CHECK(end(freed, 0) == 40 * ms);
    CHECK(freed.messages == 1);
}

TEST_CASE("first come, first served: whoever is behind the background waits for all of it") {
    Network behind(trunk);
    const auto late = behind.message("b", "d", {1'000'000'000});
    behind.background("a", "c", {1'000'000'000});
    const Timeline waited = behind.run(LinkModel::messages);
    CHECK(end(waited, 0) == 40 * ms);
    CHECK(ps(waited.end[late.receive]) == 80 * ms);

    // The other way round the run is over before the background is.
    Network before(trunk);
    const auto early = before.message("a", "c", {1'000'000'000});
    before.background("b", "d", {1'000'000'000});
    const Timeline over = before.run(LinkModel::messages);
    CHECK(ps(over.end[early.receive]) == 40 * ms);
    CHECK(ps(over.finish) == 40 * ms);
    CHECK(under_way(over, 0));
    CHECK(over.carried[before.link("sw0 -> sw1")] == Bytes{1'000'000'000});
}

TEST_CASE("what repeats goes on until the last task is done, and not longer") {
    // 0.5e9 B every 20 ms are all that the trunk carries. Shared, each takes 40 ms, and the message
    // of 1e9 B takes 80 ms. One by one, 20 ms of the background come first, then 40 ms of the task.
    for (const LinkModel links : both) {
        Network network(trunk);
        const auto message = network.message("b", "d", {1'000'000'000});
        network.background("a", "c", {500'000'000}, {.every = Duration(20 * ms)});
        const Timeline timeline = network.run(links);
        const bool fluid = links == LinkModel::flows;
        CHECK(ps(timeline.end[message.receive]) == (fluid ? 80 : 60) * ms);
        CHECK(timeline.finish == timeline.end[message.receive]);
        CHECK(end(timeline, 0) == (fluid ? 40 : 20) * ms);
        CHECK(ps(timeline.passages.at(1).begin) == (fluid ? 40 : 20) * ms);
    }
}

TEST_CASE("between two of its messages the background leaves the link alone") {
    // 0.25e9 B at 5 ms and every 100 ms: from 5 ms on both have half, the background for 20 ms, in
    // which the other moves 0.25e9 B. 5 + 20 + (1e9 - 0.125e9 - 0.25e9) / 25e9 = 50 ms.
    Network network(trunk);
    const auto message = network.message("a", "c", {1'000'000'000});
    network.background("b", "d", {250'000'000},
                       {.at = Duration(5 * ms), .every = Duration(100 * ms)});
    const Timeline timeline = network.run(LinkModel::flows);
    CHECK(ps(timeline.end[message.receive]) == 50 * ms);
    CHECK(timeline.passages.size() == 1);
    CHECK(end(timeline, 0) == 25 * ms);
}

TEST_CASE("a steady stream of 5 GB/s leaves 20 of 25 GB/s") {
    // 1e9 B / 20e9 B/s = 50 ms; the stream is never faster, and here never slower.
    Network network(trunk);
    const auto message = network.message("a", "c", {1'000'000'000});
    network.background("b", "d", {5'000'000}, {.every = Duration(ms), .pace = Duration(ms)});
    const Timeline timeline = network.run(LinkModel::flows);
    CHECK(ps(timeline.end[message.receive]) == 50 * ms + 1);  // rates are whole numbers
    for (std::size_t i = 0; i < 50; ++i) CHECK(end(timeline, i) == std::int64_t(i + 1) * ms);
}

TEST_CASE("background that begins after the end, or meets nobody, changes nothing") {
    for (const LinkModel links : both) {
        Network network(trunk);
        const auto message = network.message("a", "c", {1'000'000'000});
        network.background("b", "d", {1'000'000'000}, {.at = Duration(41 * ms)});
        network.background("d", "b", {1'000'000}, {.every = Duration(ms)});
        const Timeline timeline = network.run(links);
        CHECK(ps(timeline.end[message.receive]) == 40 * ms);
        CHECK(ps(timeline.finish) == 40 * ms);
    }
}

TEST_CASE("a program that cannot finish says so, however long its background could go on") {
    for (const LinkModel links : both) {
        Network network(trunk);
        network.background("a", "c", {1'000'000}, {.every = Duration(ms)});
        const StreamId a = network.stream("a"), b = network.stream("b");
        const TransferId there =
            network.transfers.message(network.device("a"), network.device("b"), 1_B);
        const TransferId back =
            network.transfers.message(network.device("b"), network.device("a"), 1_B);
        const TaskId receive_a = network.draft.receive(a), send_a = network.draft.send(a, there);
        const TaskId receive_b = network.draft.receive(b), send_b = network.draft.send(b, back);
        network.draft.connect(send_a, receive_b, 1_B);
        network.draft.connect(send_b, receive_a, 1_B);
        const auto timeline = simulate(network.graph, network.program(), {links, false});
        REQUIRE_FALSE(timeline.has_value());
        CHECK(timeline.error().what ==
              "the program cannot finish: 4 tasks wait for each other: receive 0 on device 0 waits "
              "for send 3 on device 1 waits for receive 2 on device 1 waits for send 1 on device 0 "
              "waits for receive 0 on device 0");
    }
}

}  // namespace fourfold
