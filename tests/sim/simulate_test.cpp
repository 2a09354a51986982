#include "sim/simulate.hpp"

#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/support/network.hpp"

namespace fourfold {
namespace {

constexpr LinkModel both[] = {LinkModel::flows, LinkModel::messages};

constexpr std::int64_t ms = 1'000'000'000;
constexpr std::int64_t second = 1'000 * ms;

TEST_CASE("a message frees its sender when it is served and arrives a latency later") {
    // 2^20 B / 25e9 B/s = 41.94304 us; and 5 us.
    for (const LinkModel links : both) {
        Network network("a -- b: 25 GB/s, 5 us");
        const auto message = network.message("a", "b", 1_MiB);
        const Timeline timeline = network.run(links);
        CHECK(ps(timeline.end[message.send]) == 41'943'040);
        CHECK(ps(timeline.end[message.receive]) == 46'943'040);
        CHECK(timeline.messages == 1);
    }
}

TEST_CASE("a message crosses several links at once") {
    // The slower second link decides: 2^20 / 10e9 = 104.8576 us, and 2 + 3 us. The sender is free
    // when the first link has served it (messages) or when all links have (flows).
    for (const LinkModel links : both) {
        Network network("a -- sw: 25 GB/s, 2 us\n sw -- b: 10 GB/s, 3 us");
        const auto message = network.message("a", "b", 1_MiB);
        const Timeline timeline = network.run(links);
        CHECK(ps(timeline.end[message.receive]) == 109'857'600);
        CHECK(ps(timeline.end[message.send]) ==
              (links == LinkModel::flows ? 104'857'600 : 41'943'040));
    }
}

TEST_CASE("two equal flows share a trunk, 80 and 80 ms, and first come first served 40 and 80") {
    Network fluid(trunk);
    const auto a = fluid.message("a", "c", {1'000'000'000});
    const auto b = fluid.message("b", "d", {1'000'000'000});
    const Timeline shared = fluid.run(LinkModel::flows);
    CHECK(ps(shared.end[a.receive]) == 80 * ms);
    CHECK(ps(shared.end[b.receive]) == 80 * ms);
    CHECK(shared.busy[fluid.link("sw0 -> sw1")] == Duration(80 * ms));

    const Timeline queued = fluid.run(LinkModel::messages);
    CHECK(ps(queued.end[a.receive]) == 40 * ms);
    CHECK(ps(queued.end[b.receive]) == 80 * ms);
    CHECK(queued.carried[fluid.link("sw0 -> sw1")] == Bytes{2'000'000'000});
    CHECK(queued.busy[fluid.link("sw0 -> sw1")] == Duration(80 * ms));
}

TEST_CASE("two flows that ecmp sends over one spine have half its speed, balanced ones all of it") {
    // a and b send 1e9 B each at 25 GB/s: 40 ms. Over the same spine 80 ms, or one after the other.
    const std::string spines = R"(
        a -- swl: 25 GB/s, 0 us
        b -- swl: 25 GB/s, 0 us
        swl -- sw0: 25 GB/s, 0 us
        swl -- sw1: 25 GB/s, 0 us
        sw0 -- swr: 25 GB/s, 0 us
        sw1 -- swr: 25 GB/s, 0 us
        swr -- c: 25 GB/s, 0 us
        swr -- d: 25 GB/s, 0 us
    )";
    const auto times = [&spines](const Routing& routing, LinkModel links) {
        Network network(spines, routing);
        const auto a = network.message("a", "c", {1'000'000'000});
        const auto b = network.message("b", "d", {1'000'000'000});
        const auto spine = [&network](std::string_view from, std::string_view to) -> LinkId {
            return network.routes.path(network.device(from), network.device(to))[1];
        };
        const bool meet = spine("a", "c") == spine("b", "d");
        const Timeline timeline = network.run(links);
        return std::tuple(meet, ps(timeline.end[a.receive]), ps(timeline.end[b.receive]));
    };
    for (const LinkModel links : both)
        CHECK(times({}, links) == std::tuple(false, 40 * ms, 40 * ms));
    int met = 0;
    constexpr int seeds = 16;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        const Routing ecmp{.kind = Routing::Kind::ecmp, .seed = seed};
        const bool meet = std::get<0>(times(ecmp, LinkModel::flows));
        met += meet ? 1 : 0;
        const std::int64_t together = (meet ? 80 : 40) * ms;
        CHECK(times(ecmp, LinkModel::flows) == std::tuple(meet, together, together));
        CHECK(times(ecmp, LinkModel::messages) == std::tuple(meet, 40 * ms, together));
    }
    CHECK(met > 0);
    CHECK(met < seeds);
}

TEST_CASE("when a short flow is over the long one gets the whole trunk") {
    // Half each until 2 * 0.5e9 B are through at 40 ms, then 0.5e9 B in 20 ms.
    Network network(trunk);
    const auto longer = network.message("a", "c", {1'000'000'000});
    const auto shorter = network.message("b", "d", {500'000'000});
    const Timeline timeline = network.run(LinkModel::flows);
    CHECK(ps(timeline.end[shorter.receive]) == 40 * ms);
    CHECK(ps(timeline.end[longer.receive]) == 60 * ms);
}

TEST_CASE("sharing conserves work: who is slowed elsewhere leaves the rest to others") {
    // A crosses edge 1 (1 GB/s) and edge 2 (10 GB/s), four more only edge 2: A gets 1, each other
    // (10 - 1) / 4 = 2.25 GB/s. All are sized to take a second.
    Network network(R"(
        a -- sw0: 1 GB/s, 0 us
        sw0 -- sw1: 10 GB/s, 0 us
        sw1 -- z: 20 GB/s, 0 us
        b -- sw0: 20 GB/s, 0 us
        c -- sw0: 20 GB/s, 0 us
        d -- sw0: 20 GB/s, 0 us
        e -- sw0: 20 GB/s, 0 us
    )");
    std::vector<Network::Message> messages = {network.message("a", "z", {1'000'000'000})};
    for (const char* name : {"b", "c", "d", "e"}) {
        messages.push_back(network.message(name, "z", {2'250'000'000}));
    }
    const Timeline timeline = network.run(LinkModel::flows);
    for (const auto& message : messages) {
        CHECK(ps(timeline.end[message.receive]) >= second);
        CHECK(ps(timeline.end[message.receive]) <= second + 5);  // rates are rounded down
    }
}

TEST_CASE("a lone transfer ends to the picosecond, whatever its bytes and rate") {
    for (const std::int64_t bytes : {1LL, 7LL, 999'983LL}) {
        for (const char* rate :
             {"1 B/s", "3 B/s", "7 GB/s", "999999937 B/s", "3.6 Tb/s", "4000000 TB/s"}) {
            CAPTURE(bytes);
            CAPTURE(rate);
            for (const LinkModel links : both) {
                Network network("a -- b: " + std::string(rate) + ", 1 ns");
                const auto message = network.message("a", "b", {bytes});
                const Timeline timeline = network.run(links);
                const Duration alone = Bytes{bytes} / network.graph[LinkId{0}].rate;
                CHECK(timeline.end[message.receive] == Time(alone + 1_ns));
            }
        }
    }
}

TEST_CASE("flows on links faster than 64-bit levels share them fairly") {
    for (const char* rate : {"100 TB/s", "1000 TB/s", "4000000 TB/s"}) {
        CAPTURE(rate);
        Network network("a -> b: " + std::string(rate) + ", 0 us\n b -> a: 1 GB/s, 0 us");
        constexpr Bytes size{1'000'000'000'000'000};
        const auto one = network.message("a", "b", size);
        const auto two = network.message("a", "b", size);
        const Timeline timeline = network.run(LinkModel::flows);
        const Duration alone = size / network.graph[LinkId{0}].rate;
        CHECK(timeline.end[one.receive] == timeline.end[two.receive]);
        CHECK(timeline.end[one.receive] >= Time(alone * 2 - 2_ps));
        CHECK(timeline.end[one.receive] <= Time(alone * 2 + 2_ps));
    }
}

TEST_CASE("a hundred messages in one stream follow each other without a gap") {
    // 64 MiB * 100 at 10 Gb/s: 5.36870912 s, and one latency.
    for (const LinkModel links : both) {
        Network network("a -- b: 10 Gb/s, 5 us");
        const StreamId from = network.stream("a"), to = network.stream("b");
        for (int i = 0; i < 100; ++i) network.message(from, to, 64_MiB);
        CHECK(ps(network.run(links).finish) == 5'368'709'120'000 + 5'000'000);
    }
}

TEST_CASE("messages without bytes take the latency only") {
    for (const LinkModel links : both) {
        Network network("a -- sw: 25 GB/s, 2 us\n sw -- b: 25 GB/s, 3 us");
        const auto message = network.message("a", "b", {});
        const Timeline timeline = network.run(links);
        CHECK(ps(timeline.end[message.send]) == 0);
        CHECK(ps(timeline.end[message.receive]) == 5'000'000);
    }
}

TEST_CASE("half the bandwidth, twice the time") {
    for (const LinkModel links : both) {
        Network fast("a -- b: 25 GB/s, 0 us"), slow("a -- b: 12.5 GB/s, 0 us");
        fast.message("a", "b", 64_MiB);
        slow.message("a", "b", 64_MiB);
        CHECK(slow.run(links).finish.time_since_epoch() ==
              2 * fast.run(links).finish.time_since_epoch());
    }
}

TEST_CASE("heads that meet at a link are served by their sender's number, not by chance") {
    // b's message is written first; a's is served first.
    Network network(trunk);
    const auto b = network.message("b", "d", {1'000'000'000});
    const auto a = network.message("a", "c", {1'000'000'000});
    const Timeline timeline = network.run(LinkModel::messages);
    CHECK(ps(timeline.end[a.receive]) == 40 * ms);
    CHECK(ps(timeline.end[b.receive]) == 80 * ms);
}

TEST_CASE("a nanosecond after a million seconds is still a nanosecond") {
    for (const LinkModel links : both) {
        Network network("a -- b: 25 GB/s, 5 us");
        const StreamId stream = network.stream("a");
        network.draft.compute(stream, Duration(1'000'000 * second));
        network.draft.compute(stream, 1_ns);
        CHECK(ps(network.run(links).finish) == 1'000'000 * second + 1'000);
    }
}

TEST_CASE("a stream is in order, and waits for what its tasks wait for") {
    // a: 3 us, then (after b's 10 us) 1 us; b: 10 us.
    Network network("a -- b: 25 GB/s, 5 us");
    const StreamId a = network.stream("a"), b = network.stream("b");
    network.draft.compute(a, 3_us);
    const TaskId other = network.draft.compute(b, 10_us);
    network.draft.compute(a, 1_us, std::span(&other, 1));
    const Timeline timeline = network.run(LinkModel::flows);
    CHECK(to_text(timeline, network.program()) ==
          "0 s .. 3 us  device 0  compute\n"
          "0 s .. 10 us  device 1  compute\n"
          "10 us .. 11 us  device 0  compute\n");
}

TEST_CASE("two runs of one program are the same") {
    for (const LinkModel links : both) {
        Network network(trunk);
        for (int i = 1; i < 20; ++i) {
            network.message(i % 2 == 0 ? "a" : "b", i % 3 == 0 ? "c" : "d", {i * 1'000'003});
        }
        const Timeline first = network.run(links), second_run = network.run(links);
        CHECK(to_text(first, network.program()) == to_text(second_run, network.program()));
        CHECK(first.events == second_run.events);
    }
}

// ---- What cannot finish, what does not fit

std::string refusal(const Network& network, const Program& program, LinkModel links) {
    const auto timeline = simulate(network.graph, program, {links, false});
    REQUIRE(!timeline.has_value());
    return timeline.error().what;
}

TEST_CASE("two that first receive and then send are told that they wait for each other") {
    Network network("a -- b: 25 GB/s, 5 us");
    const StreamId a = network.stream("a"), b = network.stream("b");
    const TransferId there = network.transfers.message(DeviceId{0}, DeviceId{1}, 1_KiB);
    const TransferId back = network.transfers.message(DeviceId{1}, DeviceId{0}, 1_KiB);
    network.draft.compute(network.stream("a"), 1_us);  // can finish; is no part of the cycle
    const TaskId a_receives = network.draft.receive(a);
    const TaskId a_sends = network.draft.send(a, there);
    const TaskId b_receives = network.draft.receive(b);
    const TaskId b_sends = network.draft.send(b, back);
    network.draft.connect(a_sends, b_receives, 1_KiB);
    network.draft.connect(b_sends, a_receives, 1_KiB);
    for (const LinkModel links : both) {
        CHECK(refusal(network, network.program(), links) ==
              "the program cannot finish: 4 tasks wait for each other: "
              "receive 1 on device 0 waits for send 4 on device 1 waits for "
              "receive 3 on device 1 waits for send 2 on device 0 waits for "
              "receive 1 on device 0");
    }
}

TEST_CASE("members that call two collectives in different orders are told so") {
    Network network("a -- b: 25 GB/s, 5 us");
    const GroupId group = network.transfers.add_group({DeviceId{0}, DeviceId{1}});
    const auto transfer = network.transfers.collective(group, CollectiveKind::all_reduce, 1_KiB);
    REQUIRE(transfer.has_value());
    const CollectiveId x = network.draft.add_collective(*transfer);
    const CollectiveId y = network.draft.add_collective(*transfer);
    const StreamId a = network.stream("a"), b = network.stream("b");
    network.draft.part(a, x, 0);
    network.draft.part(a, y, 0);
    network.draft.part(b, y, 1);
    network.draft.part(b, x, 1);
    for (const LinkModel links : both) {
        CHECK(refusal(network, network.program(), links) ==
              "the program cannot finish: 4 tasks wait for each other: "
              "part 0 on device 0 waits for part 3 on device 1 waits for "
              "part 2 on device 1 waits for part 1 on device 0 waits for "
              "part 0 on device 0");
    }
}

TEST_CASE("of a long cycle the first sixteen are told") {
    constexpr std::uint32_t devices = 20;
    std::string text;
    for (std::uint32_t i = 0; i < devices; ++i) {
        text += "d" + std::to_string(i) + " -- sw: 25 GB/s, 5 us\n";
    }
    Network network(text);
    std::vector<TaskId> receives, sends;
    for (std::uint32_t i = 0; i < devices; ++i) {
        const StreamId stream = network.stream("d" + std::to_string(i));
        receives.push_back(network.draft.receive(stream));
        sends.push_back(network.draft.send(
            stream, network.transfers.message(DeviceId{i}, DeviceId{(i + 1) % devices}, 1_KiB)));
    }
    for (std::uint32_t i = 0; i < devices; ++i) {
        network.draft.connect(sends[i], receives[(i + 1) % devices], 1_KiB);
    }
    const std::string told = refusal(network, network.program(), LinkModel::flows);
    CHECK(
        told.starts_with("the program cannot finish: 40 tasks wait for each other: receive 0 on "
                         "device 0 waits for send 39 on device 19 waits for "));
    CHECK(told.ends_with("waits for receive 24 on device 12 and so on"));
}

TEST_CASE("a time beyond the clock is a problem, not a wrapped number") {
    for (const LinkModel links : both) {
        Network network("a -- b: 1 B/s, 5 us");
        const StreamId stream = network.stream("a");
        network.draft.compute(stream, duration_limit - 1_ps);
        network.draft.compute(stream, 1_ps);
        CHECK(refusal(network, network.program(), links) ==
              "the step takes longer than the clock can hold (1281 h)");

        Network slow("a -- b: 1 B/s, 5 us");
        for (int i = 0; i < 8; ++i) slow.message("a", "b", {std::int64_t{1} << 60});
        CHECK(refusal(slow, slow.program(), links) ==
              "the step takes longer than the clock can hold (1281 h)");
    }
}

// ---- seal

TEST_CASE("a message that is expected in another size is refused by both its tasks") {
    Network network("a -- b: 25 GB/s, 5 us");
    const TransferId transfer = network.transfers.message(DeviceId{0}, DeviceId{1}, {1024});
    const TaskId send = network.draft.send(network.stream("a"), transfer);
    const TaskId receive = network.draft.receive(network.stream("b"));
    network.draft.connect(send, receive, {2048});
    const auto program = seal(std::move(network.draft));
    REQUIRE(!program.has_value());
    CHECK(program.error().what ==
          "task 0 on device 0 sends 1024 bytes, but task 1 on device 1 expects 2048: sizes must "
          "agree");
}

TEST_CASE("halves of messages without the other half are refused") {
    Network receives("a -- b: 25 GB/s, 5 us");
    receives.draft.receive(receives.stream("b"));
    const auto one = seal(std::move(receives.draft));
    REQUIRE(!one.has_value());
    CHECK(one.error().what == "task 0 on device 1 receives a message that nobody sends");

    Network sends("a -- b: 25 GB/s, 5 us");
    sends.draft.send(sends.stream("a"), sends.transfers.message(DeviceId{0}, DeviceId{1}, {1}));
    const auto other = seal(std::move(sends.draft));
    REQUIRE(!other.has_value());
    CHECK(other.error().what == "1 sends have no receive, or one has two");
}

TEST_CASE("collectives with a member missing or twice are refused") {
    const auto text_of = [](std::initializer_list<std::uint32_t> members) {
        Network network("a -- b: 25 GB/s, 5 us");
        const GroupId group = network.transfers.add_group({DeviceId{0}, DeviceId{1}});
        const auto transfer =
            network.transfers.collective(group, CollectiveKind::all_reduce, 1_KiB);
        REQUIRE(transfer.has_value());
        const CollectiveId call = network.draft.add_collective(*transfer);
        const StreamId streams[] = {network.stream("a"), network.stream("b")};
        for (const std::uint32_t member : members) {
            network.draft.part(streams[member], call, member);
        }
        const auto program = seal(std::move(network.draft));
        return program ? std::string() : program.error().what;
    };
    CHECK(text_of({0, 1}) == "");
    CHECK(text_of({0}) == "device 1 does not take part in collective 0 of its team");
    CHECK(text_of({0, 0}) == "a member joins collective 0 twice");
}

}  // namespace
}  // namespace fourfold
