#include "results/collective_run.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/audit.hpp"
#include "tests/support/network.hpp"

namespace fourfold {
namespace {

constexpr LinkModel both[] = {LinkModel::flows, LinkModel::messages};
constexpr std::uint32_t sizes[] = {1, 2, 3, 5, 6, 7, 8, 12, 17, 24, 64, 256};

std::string_view name_of(LinkModel links) {
    return links == LinkModel::flows ? "flows" : "messages";
}

Fabric network_of(std::string_view shape, const ShapeParameters& parameters = {}) {
    const auto found = find_shape(shape);
    REQUIRE(found.has_value());
    return {.shape = *found,
            .link = {.bandwidth = 25_GBps, .latency = 5_us, .efficiency = 1.0},
            .parameters = parameters};
}

const Algorithm* algorithm_of(std::string_view name) {
    const auto found = find_algorithm(name);
    REQUIRE(found.has_value());
    return *found;
}

/// Ranks on a switch with 25 GB/s and 5 us per link.
CollectiveQuestion question_of(std::string_view algorithm, std::uint32_t ranks, Bytes bytes,
                               LinkModel links = LinkModel::flows) {
    CollectiveQuestion question;
    question.algorithm = algorithm_of(algorithm);
    question.ranks = ranks;
    question.bytes = bytes;
    question.network = network_of("switch");
    question.links = links;
    question.audit = true;
    return question;
}

CollectiveRun run(const CollectiveQuestion& question) {
    CollectiveQuestion audited = question;
    audited.audit = true;
    const auto found = run_collective(audited);
    REQUIRE_MESSAGE(found.has_value(), (found ? "" : found.error().what));
    for (const std::string& fault : found->faults) FAIL_CHECK(fault);
    CHECK(found->time >= found->bound);
    return *found;
}

CollectiveCall all_reduce_in_node(std::uint32_t ranks) {
    return {.kind = CollectiveKind::all_reduce, .members = ranks, .per_node = ranks};
}

std::string refusal(const CollectiveQuestion& question) {
    const auto found = run_collective(question);
    REQUIRE(!found.has_value());
    return found.error().where + ": " + found.error().what;
}

TEST_CASE("ring all-reduce of 64 MiB: 2 (n - 1) pieces, each with two latencies of 5 us") {
    // n = 8: 14 * (8 MiB / 25 GB/s + 10 us) = 14 * (335.54432 + 10) us. Others alike.
    const struct {
        std::uint32_t ranks;
        Duration time;
    } known[] = {{8, 4'837'620'480_ps},
                 {64, 6'544'823'040_ps},
                 {256, 10'447'737'600_ps},
                 {1024, 25'823'466'240_ps}};
    for (const auto& [ranks, time] : known) {
        for (const LinkModel links : both) {
            CAPTURE(ranks);
            CAPTURE(name_of(links));
            // The audit of messages follows every step again: leave the largest to the others.
            CollectiveQuestion question = question_of("ring", ranks, 64_MiB, links);
            question.audit = ranks < 1024;
            const auto found = run_collective(question);
            REQUIRE(found.has_value());
            CHECK(found->faults.empty());
            CHECK(found->time == time);
            CHECK(found->closed_form == time);
            CHECK(found->messages == std::uint64_t{2} * (ranks - 1) * ranks);
        }
    }
}

TEST_CASE("ring all-reduce of 6 MiB by 6 ranks takes 519.4304 us") {
    for (const LinkModel links : both) {
        CHECK(run(question_of("ring", 6, 6_MiB, links)).time == 519'430'400_ps);
    }
}

TEST_CASE("on a switch every collective takes its closed form, in both link models") {
    for (const Algorithm* algorithm : algorithms()) {
        if (algorithm->name == "hierarchical") continue;  // needs nodes
        for (const std::string_view kind_name : collective_kinds()) {
            const CollectiveKind kind = *find_collective_kind(kind_name);
            for (const std::uint32_t ranks : sizes) {
                CollectiveQuestion question = question_of(algorithm->name, ranks, Bytes{6'291'457});
                question.kind = kind;
                question.root = ranks / 2;
                if (algorithm->refuse({kind, ranks, ranks, question.bytes, question.root})) {
                    continue;
                }
                for (const LinkModel links : both) {
                    CAPTURE(algorithm->name);
                    CAPTURE(kind_name);
                    CAPTURE(ranks);
                    CAPTURE(name_of(links));
                    question.links = links;
                    const CollectiveRun found = run(question);
                    CHECK(found.closed_form == found.time);
                    CHECK((ranks > 1) == (found.time > Duration::zero()));
                    CHECK((ranks > 1) == (found.messages > 0));
                }
            }
        }
    }
}

TEST_CASE("a ring takes its closed form wherever its edges are equal and its own") {
    const struct {
        std::string_view shape;
        ShapeParameters parameters;
        std::uint32_t ranks;
        bool equal;  // all edges of the ring, none shared
    } cases[] = {
        {"ring", {}, 2, true},
        {"ring", {}, 7, true},
        {"fully_connected", {}, 8, true},
        {"torus", {.dimensions = {8}}, 8, true},
        {"torus", {.dimensions = {4, 4}}, 16, false},         // from row to row it is two links
        {"fat_tree", {.leaf_ports = 8}, 8, true},             // one leaf: a switch
        {"fat_tree", {.leaf_ports = 4}, 8, false},            // over the spine it is four links
        {"rails", {}, 8, true},                               // one rail of one leaf: a switch
        {"dragonfly", {.endpoints_per_router = 8}, 8, true},  // one router
        {"dragonfly", {}, 8, false},                          // two
        {"sites", {.wan = {.bandwidth = 1_GBps, .latency = 10_ms}}, 8, false},
        {"sites", {.wan = {.bandwidth = 1_GBps, .latency = 10_ms}}, 2, true},  // over the wan
    };
    for (const auto& [shape, parameters, ranks, equal] : cases) {
        CAPTURE(shape);
        CAPTURE(ranks);
        CollectiveQuestion question = question_of("ring", ranks, 8_MiB);
        question.network = network_of(shape, parameters);
        const CollectiveRun flows = run(question);
        question.links = LinkModel::messages;
        const CollectiveRun messages = run(question);
        CHECK(flows.closed_form.has_value() == equal);
        if (!equal) continue;
        CHECK(flows.time == *flows.closed_form);
        CHECK(messages.time == *flows.closed_form);
    }
}

TEST_CASE("other algorithms have a closed form on a switch only") {
    for (const char* shape : {"ring", "fully_connected"}) {
        for (const char* algorithm : {"tree", "direct", "central"}) {
            for (const LinkModel links : both) {
                CAPTURE(shape);
                CAPTURE(algorithm);
                CollectiveQuestion question = question_of(algorithm, 8, 8_MiB, links);
                question.network = network_of(shape);
                CHECK_FALSE(run(question).closed_form.has_value());
                question.ranks = 2;  // two have one link pair, whatever the shape
                const CollectiveRun two = run(question);
                CHECK(two.closed_form == two.time);
            }
        }
    }
}

TEST_CASE("no algorithm beats the ports: all-reduce of 100 MB at 50 GB/s takes 3.5 ms at least") {
    for (const Algorithm* algorithm : algorithms()) {
        if (algorithm->name == "hierarchical") continue;  // needs nodes
        for (const LinkModel links : both) {
            CAPTURE(algorithm->name);
            CollectiveQuestion question =
                question_of(algorithm->name, 8, Bytes{100'000'000}, links);
            question.network.link.bandwidth = 50_GBps;
            if (algorithm->refuse(all_reduce_in_node(8))) continue;
            CHECK(run(question).time >= 3500_us);
        }
    }
}

TEST_CASE("one late rank delays all by as much, message by message the first a round less") {
    CollectiveQuestion question = question_of("ring", 8, 64_MiB, LinkModel::messages);
    question.start.assign(8, Duration::zero());
    question.start[3] = 1_ms;
    const CollectiveRun messages = run(question);
    CHECK(*std::ranges::max_element(messages.finish) == Time(5'837'620'480_ps));
    CHECK(*std::ranges::min_element(messages.finish) == Time(5'767'620'480_ps));
    CHECK_FALSE(messages.closed_form.has_value());

    question.links = LinkModel::flows;
    for (const Time finish : run(question).finish) CHECK(finish == Time(5'837'620'480_ps));
}

// Whoever is late, everybody else gets on as far as it can, and what a late member sends or passes
// on comes at most that much later.
TEST_CASE("a late rank delays no algorithm by more than it is late") {
    for (const Algorithm* algorithm : algorithms()) {
        if (algorithm->name == "hierarchical") continue;  // needs nodes
        for (const std::string_view kind_name : collective_kinds()) {
            for (const std::uint32_t ranks : {6U, 8U, 13U}) {
                CollectiveQuestion question = question_of(algorithm->name, ranks, 1_MiB);
                question.kind = *find_collective_kind(kind_name);
                if (algorithm->refuse({question.kind, ranks, ranks, question.bytes})) continue;
                CAPTURE(algorithm->name);
                CAPTURE(kind_name);
                CAPTURE(ranks);
                const Duration together = *run(question).closed_form;
                for (std::uint32_t late = 0; late < ranks; late += 3) {
                    CAPTURE(late);
                    question.start.assign(ranks, Duration::zero());
                    question.start[late] = 1_ms;
                    question.links = LinkModel::flows;
                    CHECK(run(question).time == 1_ms + together);
                    question.links = LinkModel::messages;
                    const CollectiveRun messages = run(question);
                    CHECK(messages.time <= 1_ms + together);
                    CHECK(messages.finish[late] >= Time(1_ms));
                    // What gathers or sums up all cannot end before the last has come.
                    if (question.kind != CollectiveKind::all_reduce) continue;
                    for (const Time finish : messages.finish) CHECK(finish > Time(1_ms));
                }
            }
        }
    }
}

// 4 ranks, 1 MiB, rank 3 late by 1 ms: rounds of 512, 256, 256, 512 KiB. Ranks 0 and 1 have met,
// then wait for 2 and 3, which meet at 1 ms: all are as late as 3.
// 3 of 4 MiB blocks: 1 MiB / 25 GB/s + 10 us = 51.94304 us. Pairwise, 3 meets 2, then 1, then 0;
// the others have met already, but 0 and 1 in round 0 only: round 1 is 0<->2, 1<->3.
TEST_CASE("rounds wait for a late partner") {
    CollectiveQuestion question = question_of("halving_doubling", 4, 1_MiB, LinkModel::messages);
    question.start = {Duration::zero(), Duration::zero(), Duration::zero(), 1_ms};
    // 1.5 MiB / 25 GB/s = 62.91456 us.
    for (const Time finish : run(question).finish) {
        CHECK(finish == Time(1_ms + 62'914'560_ps + 40_us));
    }
    question = question_of("pairwise", 4, 4_MiB, LinkModel::messages);
    question.kind = CollectiveKind::all_to_all;
    question.start = {Duration::zero(), Duration::zero(), Duration::zero(), 1_ms};
    for (const Time finish : run(question).finish) {
        CHECK(finish == Time(1_ms + 3 * 51'943'040_ps));
    }
}

TEST_CASE("every edge of a ring carries 2 (n - 1) / n of the bytes, no more and no less") {
    for (const char* shape : {"switch", "ring"}) {
        for (const LinkModel links : both) {
            CAPTURE(shape);
            CollectiveQuestion question = question_of("ring", 8, 64_MiB, links);
            question.network = network_of(shape);
            const auto prepared = prepare_collective(question);
            REQUIRE(prepared.has_value());
            const Timeline timeline = run_audited(prepared->graph, prepared->program, links);
            std::size_t used = 0;
            for (const LinkId link : timeline.carried.keys()) {
                if (timeline.carried[link] == Bytes{}) continue;
                ++used;
                CHECK(timeline.carried[link] == Bytes{117'440'512});
                // 14 * 335.54432 us: 97.1 % of 4.837620 ms (and of a shape without a switch, 98.5).
                if (links == LinkModel::messages) CHECK(timeline.busy[link] == 4'697'620'480_ps);
            }
            CHECK(used == (std::string_view(shape) == "switch" ? 16 : 8));
            CHECK(run(question).wire_bytes_per_rank == Bytes{117'440'512});
        }
    }
}

TEST_CASE("twice the bytes take twice the time, latencies apart") {
    for (const LinkModel links : both) {
        const Duration latencies = 140_us;  // 14 * 10 us
        const Duration once = run(question_of("ring", 8, 256_MiB, links)).time;
        const Duration twice = run(question_of("ring", 8, 512_MiB, links)).time;
        CHECK(twice - latencies == 2 * (once - latencies));
    }
}

TEST_CASE("small sizes take their latencies, and never less for more bytes") {
    for (const Algorithm* algorithm : algorithms()) {
        if (algorithm->name == "hierarchical") continue;  // needs nodes
        for (const LinkModel links : both) {
            CAPTURE(algorithm->name);
            if (algorithm->refuse(all_reduce_in_node(8))) continue;
            Duration before{};
            for (const Bytes bytes : {0_B, 1_B, 7_B, 64_KiB, 65_KiB, 1_MiB}) {
                const Duration time = run(question_of(algorithm->name, 8, bytes, links)).time;
                CHECK(time >= before);
                if (algorithm->name == "ring") CHECK(time >= 140_us);
                before = time;
            }
        }
    }
}

TEST_CASE("a terabyte is no problem") {
    // 2 * 7 / 8 * 2^40 B at 25 GB/s is 76.965814 s.
    const CollectiveRun found = run(question_of("ring", 8, Bytes{std::int64_t{1} << 40}));
    CHECK(found.closed_form == found.time);
    CHECK(found.time > Duration(76'000'000'000'000));
    CHECK(found.time < Duration(77'000'000'000'000));
}

TEST_CASE("bandwidths are the bytes over the time, and what a port sees of it") {
    const CollectiveRun found = run(question_of("ring", 8, 64_MiB));
    CHECK(found.algorithm_bandwidth == doctest::Approx(67'108'864 / 4.83762048e-3));
    CHECK(found.bus_bandwidth == doctest::Approx(1.75 * 67'108'864 / 4.83762048e-3));
    const CollectiveRun lone = run(question_of("ring", 1, 64_MiB));
    CHECK(lone.time == Duration::zero());
    CHECK(lone.closed_form == Duration::zero());
    CHECK(lone.algorithm_bandwidth == 0);
    CHECK(lone.messages == 0);
}

TEST_CASE("auto takes ring or tree, whichever is faster") {
    for (const std::uint32_t ranks : {2U, 8U, 64U, 512U}) {
        for (const Bytes bytes : {1_KiB, 1_MiB, 64_MiB}) {
            CAPTURE(ranks);
            CollectiveQuestion question = question_of("ring", ranks, bytes);
            const Duration ring = run(question).time;
            const Duration tree = run(question_of("tree", ranks, bytes)).time;
            question.algorithm = nullptr;
            const CollectiveRun chosen = run(question);
            CHECK(chosen.time == std::min(ring, tree));
            CHECK(chosen.algorithm == (tree < ring ? "tree" : "ring"));
        }
    }
}

// 8 MB in 2 nodes of 4, switches in the nodes and one that joins all: a hierarchy sends 2 MB / 300
// GB/s + 3 us = 9.666667 us six times in a node and 1 MB / 25 GB/s + 5 us = 45 us twice across.
// Without nodes a ring has 14 steps of 45 us, in one node of 1 MB / 300 GB/s + 3 us.
TEST_CASE("ranks in nodes use the links of both networks") {
    for (const LinkModel links : both) {
        CollectiveQuestion question = question_of("hierarchical", 8, Bytes{8'000'000}, links);
        question.network.link.latency = 2500_ns;
        CollectiveQuestion::Nodes nodes{.ranks = 4, .network = network_of("switch")};
        nodes.network.link = {.bandwidth = 300_GBps, .latency = 1500_ns, .efficiency = 1.0};
        question.nodes = nodes;
        const CollectiveRun found = run(question);
        CHECK(found.time == 6 * 9'666'667_ps + 2 * 45_us);
        CHECK_FALSE(found.closed_form.has_value());
        CHECK(found.wire_bytes_per_rank == Bytes{14'000'000});

        question.nodes->ranks = 1;  // no nodes: all through the network
        question.algorithm = algorithm_of("ring");
        CHECK(run(question).time == 14 * 45_us);
        question.nodes->ranks = 8;  // one node: nothing else
        question.algorithm = algorithm_of("hierarchical");
        CHECK(run(question).time == 14 * (3'333'334_ps + 3_us));
    }
}

// 64 MiB at 25 GB/s everywhere: 5.033165 ms whether there are 2 in each of 8 nodes or 8 in each of
// 2 (see the closed form's test); latencies of 8 us in a node and 10 us across, 2 and 14, or 14
// and 2. At equal latencies the routes through node and network would tie, and fluid bytes take
// both.
TEST_CASE("a hierarchy of 2 x 8 moves its bytes as fast as one of 8 x 2") {
    for (const LinkModel links : both) {
        CollectiveQuestion question = question_of("hierarchical", 16, 64_MiB, links);
        question.nodes = {.ranks = 2, .network = network_of("switch")};
        question.nodes->network.link.latency = 4_us;
        CHECK(run(question).time == 5'033'164'800_ps + 2 * 8_us + 14 * 10_us);
        question.nodes->ranks = 8;
        CHECK(run(question).time == 5'033'164'800_ps + 14 * 8_us + 2 * 10_us);
    }
}

// ---- Several at once

struct Ring8 {
    Ring8()
        : network([] {
              std::string text;
              for (int i = 0; i < 8; ++i) text += fmt::format("d{} -- sw: 25 GB/s, 5 us\n", i);
              return text;
          }()) {}

    // `calls` all-reduces of 64 MiB from the start, each rank's in one stream or each in its own.
    Timeline run(int calls, bool one_stream, LinkModel links) {
        const Algorithm* ring = algorithm_of("ring");
        Transfers transfers(network.routes, network.draft, ring, {}, {});
        std::vector<DeviceId> all;
        for (const DeviceId device : ids<DeviceId>(8)) all.push_back(device);
        const GroupId group = transfers.add_group(all);
        const auto transfer = transfers.collective(group, CollectiveKind::all_reduce, 64_MiB);
        REQUIRE(transfer.has_value());
        std::vector<StreamId> streams;
        for (int call = 0; call < calls; ++call) {
            if (call == 0 || !one_stream) {
                streams.clear();
                for (const DeviceId device : all) {
                    streams.push_back(network.draft.add_stream(device, 0));
                }
            }
            const CollectiveId id = network.draft.add_collective(*transfer);
            for (std::uint32_t rank = 0; rank < 8; ++rank) {
                network.draft.part(streams[rank], id, rank);
            }
        }
        return network.run(links);
    }

    Network network;
};

TEST_CASE("two all-reduces in one stream take twice the time") {
    for (const LinkModel links : both) {
        CHECK(ps(Ring8().run(2, true, links).finish) == 9'675'240'960);
    }
}

TEST_CASE("two all-reduces in two streams share the links and hide each other's latencies") {
    // Fluid: 2 * 14 * 335.54432 us. Message by message one latency of 10 us shows.
    const std::int64_t fluid = ps(Ring8().run(2, false, LinkModel::flows).finish);
    CHECK(fluid >= 9'395'240'960);
    CHECK(fluid <= 9'395'240'961);  // shared speeds are rounded down
    CHECK(ps(Ring8().run(2, false, LinkModel::messages).finish) == 9'405'240'960);
}

TEST_CASE("fairness is per stream: a slowed ring leaves its other edges to others") {
    // On edge a -> b a ring and two messages get a third each. The ring then takes a third of
    // b -> c too, and the message there two thirds. No latencies, so that full speed is the link's.
    Network network("a -> b: 25 GB/s, 0 us\n b -> c: 25 GB/s, 0 us\n c -> a: 25 GB/s, 0 us");
    Transfers transfers(network.routes, network.draft, algorithm_of("ring"), {}, {});
    const GroupId group = transfers.add_group({DeviceId{0}, DeviceId{1}, DeviceId{2}});
    const auto transfer = transfers.collective(group, CollectiveKind::all_reduce, {3'000'000'000});
    REQUIRE(transfer.has_value());
    const CollectiveId ring = network.draft.add_collective(*transfer);
    const char* names[] = {"a", "b", "c"};
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        network.draft.part(network.stream(names[rank]), ring, rank);
    }
    network.message("a", "b", {1'000'000'000});
    network.message("a", "b", {1'000'000'001});
    const auto on_other_edge = network.message("b", "c", {500'000'000});
    const Timeline timeline = network.run(LinkModel::flows);
    constexpr double full = 281'474'976'710'656.0;  // 2^48
    std::vector<double> speeds;
    for (const Timeline::Rate& rate : timeline.rates) {
        if (rate.at != Time{}) continue;
        if (rate.transfer.value >= speeds.size()) speeds.resize(rate.transfer.value + 1);
        speeds[rate.transfer.value] = static_cast<double>(rate.speed) / full;
    }
    REQUIRE(speeds.size() == 4);
    CHECK(speeds[0] == doctest::Approx(1.0 / 3).epsilon(1e-9));
    CHECK(speeds[1] == doctest::Approx(1.0 / 3).epsilon(1e-9));
    CHECK(speeds[2] == doctest::Approx(1.0 / 3).epsilon(1e-9));
    CHECK(speeds[3] == doctest::Approx(2.0 / 3).epsilon(1e-9));
    // 0.5e9 B at two thirds of 25 GB/s: 30 ms.
    CHECK(ps(timeline.end[on_other_edge.receive]) >= 30'000'000'000);
    CHECK(ps(timeline.end[on_other_edge.receive]) <= 30'000'000'001);
}

TEST_CASE("rings on a torus with one slow dimension finish, several after each other") {
    // 4 x 4 x 8, the innermost dimension with 100 times the latency; 8 calls in one stream.
    auto draft = build_cluster({.nodes = 1,
                                .devices_per_node = 128,
                                .node = network_of("torus", {.dimensions = {4, 4, 8}}),
                                .fabric = {}});
    REQUIRE(draft.has_value());
    for (Link& link : draft->links) {
        const std::uint32_t apart =
            std::max(link.from.value, link.to.value) - std::min(link.from.value, link.to.value);
        if (apart == 1 || apart == 7) link.spec.latency *= 100;
    }
    const auto graph = seal(std::move(*draft));
    REQUIRE(graph.has_value());
    Routes routes(*graph);
    ProgramDraft program;
    Transfers transfers(routes, program, algorithm_of("ring"), {}, {});
    std::vector<DeviceId> all;
    for (const DeviceId device : ids<DeviceId>(128)) all.push_back(device);
    const auto transfer =
        transfers.collective(transfers.add_group(all), CollectiveKind::all_reduce, 1_MiB);
    REQUIRE(transfer.has_value());
    std::vector<StreamId> streams;
    for (const DeviceId device : all) streams.push_back(program.add_stream(device, 0));
    for (int call = 0; call < 8; ++call) {
        const CollectiveId id = program.add_collective(*transfer);
        for (std::uint32_t rank = 0; rank < 128; ++rank) program.part(streams[rank], id, rank);
    }
    const auto sealed = seal(std::move(program));
    REQUIRE(sealed.has_value());
    // At least 8 rounds of 254 steps over edges most of which have 500 us.
    for (const LinkModel links : both) {
        CHECK(run_audited(*graph, *sealed, links).finish > Time(100_ms));
    }
}

// ---- What cannot be asked

TEST_CASE("a wrong question is refused by the parameter's name") {
    CHECK(refusal(question_of("ring", 0, 1_MiB)) == "ranks: a collective needs at least 1 rank");
    CollectiveQuestion question = question_of("central", 4, 1_MiB);
    question.root = 4;
    CHECK(refusal(question) == "root: root 4 is none of the 4 ranks, which count from 0");
    question = question_of("tree", 4, 1_MiB);
    question.kind = CollectiveKind::all_gather;
    CHECK(refusal(question).starts_with("algorithm: tree does all_reduce and broadcast"));
    question = question_of("ring", 4, 1_MiB);
    question.network = network_of("torus", {.dimensions = {3, 3}});
    CHECK(refusal(question).starts_with("dimensions: "));
    question = question_of("ring", 4, 1_MiB);
    question.network.link.bandwidth = {};
    CHECK(refusal(question).starts_with("bandwidth: "));
    question = question_of("ring", 6, 1_MiB);
    question.nodes = {.ranks = 4, .network = network_of("switch")};
    CHECK(refusal(question) == "per-node: 6 ranks are no whole number of nodes of 4");
    question.nodes->ranks = 3;
    question.nodes->network.link.bandwidth = {};
    CHECK(refusal(question).starts_with("node.bandwidth: "));
    CHECK(refusal(question_of("ring", (1 << 20) + 1, 1_MiB)) ==
          "ranks: 1048577 ranks are too many; at most 1048576");
    CHECK(refusal(question_of("direct", 8192, 1_MiB)) ==
          "ranks: direct joins each of 8192 ranks with each other: 67100672 pairs are too many; at "
          "most 16777216");
    question = question_of("pairwise", 8192, 1_MiB);
    CHECK(refusal(question).starts_with("algorithm: pairwise does all_to_all and reduce_scatter"));
    question.kind = CollectiveKind::all_to_all;
    CHECK(refusal(question) ==
          "ranks: pairwise joins each of 8192 ranks with each other: 67100672 pairs are too many; "
          "at most 16777216");
    CHECK(refusal(question_of("ring", 4, Bytes{std::int64_t{1} << 60})) ==
          "bytes: 4 ranks can exchange 0 to 288230376151711744 bytes, not 1152921504606846976");
}

TEST_CASE("a time beyond the clock is a problem") {
    CollectiveQuestion question = question_of("central", 8, Bytes{std::int64_t{1} << 50});
    question.network.link.bandwidth = {1'000'000};
    for (const LinkModel links : both) {
        question.links = links;
        CHECK(refusal(question) == ": the step takes longer than the clock can hold (1281 h)");
    }
}

TEST_CASE("on a fat tree ecmp's collisions make collectives slower, on a switch there are none") {
    ShapeParameters leaves;
    leaves.leaf_ports = 8;
    for (const LinkModel links : both) {
        for (const std::string_view algorithm : {"ring", "direct"}) {
            CAPTURE(name_of(links));
            CAPTURE(algorithm);
            CollectiveQuestion question = question_of(algorithm, 64, 64_MiB, links);
            const Duration on_switch = run(question).time;
            question.routing = {.kind = Routing::Kind::ecmp, .seed = 1};
            CHECK(run(question).time == on_switch);
            question.network = network_of("fat_tree", leaves);
            const Duration hashed = run(question).time;
            CHECK(run(question).time == hashed);
            question.routing = {};
            const Duration balanced = run(question).time;
            CHECK(hashed >= balanced);
            if (algorithm == "direct") CHECK(hashed > balanced);
        }
    }
}

}  // namespace
}  // namespace fourfold
