#include "workloads/transfers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/training.hpp"

namespace fourfold {
namespace {

constexpr std::uint32_t root = 0;

/// A graph and the transfers on it.
struct Bench {
    explicit Bench(Graph made, const TransportCosts& node = {}, const TransportCosts& fabric = {},
                   std::string_view algorithm = "ring")
        : graph(std::move(made)),
          routes(graph),
          transfers(routes, draft, *find_algorithm(algorithm), node, fabric) {}

    GroupId group(std::uint32_t first, std::uint32_t count, std::uint32_t stride = 1) {
        std::vector<DeviceId> members;
        for (std::uint32_t i = 0; i < count; ++i) members.push_back({first + i * stride});
        return transfers.add_group(std::move(members));
    }
    const Transfer& collective(GroupId members, CollectiveKind kind, Bytes bytes) {
        const auto made = transfers.collective(members, kind, bytes, root);
        REQUIRE(made.has_value());
        return draft.transfer(*made);
    }

    /// One call, of a program that holds nothing else; nothing can be added after it.
    Timeline run(GroupId members, CollectiveKind kind, Bytes bytes, LinkModel links) {
        const auto made = transfers.collective(members, kind, bytes, root);
        REQUIRE(made.has_value());
        const CollectiveId call = draft.add_collective(*made);
        std::uint32_t member = 0;
        for (const DeviceId device : transfers.members(members)) {
            draft.part(draft.add_stream(device, 0), call, member++);
        }
        const Result<Program> program = seal(std::move(draft));
        REQUIRE_MESSAGE(program.has_value(), (program ? "" : program.error().what));
        return run_audited(graph, *program, links);
    }

    Graph graph;
    Routes routes;
    ProgramDraft draft;
    Transfers transfers;
};

}  // namespace

TEST_CASE("a message takes its bytes over the slowest link, and the latency of all") {
    // In a node: 2 links of 300 GB/s and 1.5 us. 3 MB / 300 GB/s = 10 us.
    // Across: 2 links of 25 GB/s and 2.5 us: 120 us.
    Bench bench(cluster(2, 2), {.message_overhead = 1_us}, {.message_overhead = 7_us});
    const TransferId near_id = bench.transfers.message({0}, {1}, {3'000'000});
    const Transfer near = bench.draft.transfer(near_id);
    CHECK(near.alone == 1_us + 10_us);
    CHECK(near.overhead == 1_us);
    CHECK(near.latency == 3_us);
    CHECK(near.uses.size() == 2);
    CHECK_FALSE(near.is_collective);
    const Transfer far = bench.draft.transfer(bench.transfers.message({0}, {2}, {3'000'000}));
    CHECK(far.alone == 7_us + 120_us);
    CHECK(far.latency == 5_us);
    for (const LinkUse& use : far.uses) CHECK(use.bytes.value == 3'000'000);

    // Each distinct transfer is made once.
    CHECK(bench.transfers.message({0}, {1}, {3'000'000}) == near_id);
    CHECK(bench.transfers.message({1}, {0}, {3'000'000}) != near_id);
    CHECK(bench.transfers.kinds().size() == 3);
}

TEST_CASE("a device sends as many bytes for Llama 3 8B as the formulas say") {
    // P = 8,030,261,248 parameters of 2 bytes. All-reduce 2 (n - 1) / n 2 P, a gather or a scatter
    // half of it; scatter of fp32 and gather of bf16 (n - 1) / n 6 P.
    const struct {
        std::uint32_t ranks;
        std::int64_t all_reduce, scatter_fp32_and_gather;
    } cases[] = {{2, 16'060'522'496, 24'090'783'744},
                 {8, 28'105'914'368, 42'158'871'552},
                 {64, 31'619'153'664, 47'428'730'496}};
    constexpr Bytes weights{2 * 8'030'261'248};
    for (const auto& [ranks, all_reduce, scatter_fp32_and_gather] : cases) {
        for (const std::uint32_t per_node : {ranks, 2U}) {
            Bench bench(cluster(ranks / per_node, per_node));
            const GroupId all = bench.group(0, ranks);
            const Transfer reduce = bench.collective(all, CollectiveKind::all_reduce, weights);
            const Transfer gather = bench.collective(all, CollectiveKind::all_gather, weights);
            const Transfer scatter =
                bench.collective(all, CollectiveKind::reduce_scatter, 2 * weights);
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                CHECK(reduce.sent[rank].value == all_reduce);
                CHECK(2 * gather.sent[rank].value == all_reduce);
                CHECK(scatter.sent[rank].value + gather.sent[rank].value ==
                      scatter_fp32_and_gather);
            }
        }
    }
}

TEST_CASE("a ring all-reduce on idle equal links takes its closed form") {
    // 8 devices: 14 (ceil(64 MiB / 8) / 300 GB/s + 3 us); 8,388,608 B / 300 GB/s = 27.962027 us.
    Bench bench(cluster(1, 8));
    const Transfer made = bench.collective(bench.group(0, 8), CollectiveKind::all_reduce, 64_MiB);
    CHECK(made.start == Duration::zero());
    CHECK(made.alone == 14 * (27'962'027_ps + 3_us));
    for (const LinkUse& use : made.uses) CHECK(use.bytes.value == 14 * 8'388'608);
    CHECK(made.uses.size() == 16);
}

TEST_CASE("start-up costs of a collective are those of its links, and half for half a reduction") {
    const TransportCosts node{.message_overhead = {},
                              .collective_start = 20_us,
                              .collective_per_sqrt_mib = 5_us,
                              .collective_edge = 0};
    const TransportCosts fabric{.message_overhead = {},
                                .collective_start = 100_us,
                                .collective_per_sqrt_mib = {},
                                .collective_edge = 0};
    Bench bench(cluster(2, 4), node, fabric);
    const GroupId inside = bench.group(0, 4), across = bench.group(0, 2, 4);
    // 20 us + 5 us * sqrt(16 MiB / MiB) = 40 us.
    CHECK(bench.collective(inside, CollectiveKind::all_reduce, 16_MiB).start == 40_us);
    CHECK(bench.collective(inside, CollectiveKind::all_gather, 16_MiB).start == 20_us);
    CHECK(bench.collective(inside, CollectiveKind::reduce_scatter, 16_MiB).start == 20_us);
    CHECK(bench.collective(across, CollectiveKind::all_reduce, 16_MiB).start == 100_us);

    // A ring of 4 that reaches 1 - 0.4 / 4 = 0.9 of the rate takes 1 / 0.9 as long for its bytes:
    // 6 * 75,000 B / 300 GB/s = 1.5 us on each link, a ninth more.
    Bench edge(cluster(1, 4), {.message_overhead = {},
                               .collective_start = {},
                               .collective_per_sqrt_mib = {},
                               .collective_edge = 0.4});
    const Transfer slowed =
        edge.collective(edge.group(0, 4), CollectiveKind::all_reduce, {300'000});
    CHECK(slowed.start.count() == 166'667);
    CHECK(slowed.alone == slowed.start + 6 * (250'000_ps + 3_us));
}

TEST_CASE("a group uses the ports of all its members in a node, where nodes have as many") {
    Bench bench(cluster(2, 4));
    const auto per_node = [&](GroupId group) {
        return bench.transfers.call(group, CollectiveKind::all_reduce, 1_MiB, root).per_node;
    };
    CHECK(per_node(bench.group(0, 8)) == 4);
    CHECK(per_node(bench.group(0, 4)) == 4);
    CHECK(per_node(bench.group(0, 2, 4)) == 1);
    CHECK(per_node(bench.group(0, 4, 2)) == 2);  // 0 2 | 4 6
    CHECK(per_node(bench.group(1, 6)) == 3);     // 1 2 3 | 4 5 6
    CHECK(per_node(bench.group(2, 5)) == 1);     // 2 3 | 4 5 6
    // 4 rings, each with a quarter of 8 MB in 8 pieces of 250,000 B: 14 steps over the fabric, of
    // which each port sees one ring's: 14 * 250,000 B.
    const Transfer made =
        bench.collective(bench.group(0, 8), CollectiveKind::all_reduce, {8'000'000});
    CHECK(made.plan.channels == 4);
    for (const LinkUse& use : made.uses) {
        if (bench.graph[use.link].rate == 25_GBps) CHECK(use.bytes.value == 14 * 250'000);
    }
}

// Two nodes of 4, 8 MB: pieces of 1 MB. In a node 2 pieces of it, 2 MB / 300 GB/s + 3 us =
// 9.666667 us, 3 + 3 times; across 1 MB / 25 GB/s + 5 us = 45 us, twice.
TEST_CASE("a hierarchy takes its phases' time on the links of the nodes and of the fabric") {
    const Duration scatter = 3 * 9'666'667_ps, across = 45_us;
    const struct {
        CollectiveKind kind;
        Duration time;
        std::int64_t in_node, on_fabric;  // sent by a member, MB
    } cases[] = {{CollectiveKind::all_reduce, 2 * (scatter + across), 12, 2},
                 {CollectiveKind::reduce_scatter, scatter + across, 6, 1},
                 {CollectiveKind::all_gather, scatter + across, 6, 1}};
    for (const auto& [kind, time, in_node, on_fabric] : cases) {
        CAPTURE(name_of(kind));
        for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
            Bench bench(cluster(2, 4), {}, {}, "hierarchical");
            const GroupId all = bench.group(0, 8);
            const Transfer made = bench.collective(all, kind, {8'000'000});
            CHECK(made.alone == time);
            CHECK(made.uses.size() == 2 * 16);
            for (const LinkUse& use : made.uses) {
                const bool fabric = bench.graph[use.link].rate == 25_GBps;
                CHECK(use.bytes.value == 1'000'000 * (fabric ? on_fabric : in_node));
            }
            CHECK(ps(bench.run(all, kind, {8'000'000}, links).finish) == time.count());
        }
    }
    // 4 ring members of 2 nodes each: 2 in a node, and 3 in each of 2.
    Bench bench(cluster(2, 4), {}, {}, "hierarchical");
    for (const GroupId group : {bench.group(0, 4, 2), bench.group(1, 6)}) {
        const Transfer made = bench.collective(group, CollectiveKind::all_reduce, 1_MiB);
        CHECK(made.rule == &(*find_algorithm("hierarchical"))->rule);
    }
    CHECK(bench.transfers.refusals().empty());
}

TEST_CASE("a group with nodes of unequal sizes is no hierarchy: auto chooses") {
    for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
        Bench bench(cluster(2, 4), {}, {}, "hierarchical");
        for (const GroupId group : {bench.group(2, 5), bench.group(0, 2, 4)}) {
            const Transfer made = bench.collective(group, CollectiveKind::all_gather, 1_MiB);
            CHECK(made.rule == &(*find_algorithm("ring"))->rule);
        }
        CHECK(bench.transfers.refusals() ==
              std::set<std::string>{
                  "hierarchical needs several members in every node, and as many in each"});
        CHECK(ps(bench.run(bench.group(2, 5), CollectiveKind::all_gather, 1_MiB, links).finish) >
              0);
    }
}

// Messages of a change that never comes are sent one by one, without trains.
TEST_CASE("what a member can send at once goes as if it were sent one by one") {
    const struct {
        const char* shape;
        ShapeParameters parameters;
        std::uint32_t per_node;
        Routing routing;
    } cases[] = {{"switch", {}, 1, {}},
                 {"switch", {}, 4, {}},
                 {"fat_tree", {.oversubscription = 2, .leaf_ports = 12}, 1, {}},
                 {"fat_tree", {.leaf_ports = 8}, 4, {.kind = Routing::Kind::ecmp, .seed = 3}},
                 {"torus", {.dimensions = {4, 3, 6}}, 1, {}}};
    for (const auto& [shape, parameters, per_node, routing] : cases) {
        CAPTURE(shape);
        constexpr std::uint32_t devices = 72;
        auto draft = build_cluster(
            {.nodes = devices / per_node,
             .devices_per_node = per_node,
             .node = Fabric{*find_shape("switch"), {.bandwidth = 300_GBps, .latency = 1_us}, {}},
             .fabric =
                 Fabric{*find_shape(shape), {.bandwidth = 25_GBps, .latency = 2_us}, parameters}});
        REQUIRE(draft);
        draft->routing = routing;
        Bench bench(*seal(std::move(*draft)), {}, {}, "direct");

        // All of them have a path for each pair asked for; the nine, which meet them on their
        // links at times of their own, keep theirs.
        const GroupId all = bench.group(0, devices), nine = bench.group(0, 9, 8);
        const auto call = [&](GroupId group, CollectiveKind kind, Bytes bytes, Duration late) {
            const auto made = bench.transfers.collective(group, kind, bytes);
            REQUIRE(made.has_value());
            const CollectiveId id = bench.draft.add_collective(*made);
            std::uint32_t member = 0;
            for (const DeviceId device : bench.transfers.members(group)) {
                const StreamId stream = bench.draft.add_stream(device, 0);
                bench.draft.compute(stream, late * (member * 7 % 5));
                bench.draft.part(stream, id, member++);
            }
            return bench.draft.team(bench.draft.transfer(*made).team).keeps_paths();
        };
        CHECK_FALSE(call(all, CollectiveKind::all_to_all, 1_MiB, 0_us));
        CHECK(call(nine, CollectiveKind::all_reduce, 1_MiB, 3_us));
        const Result<Program> program = seal(std::move(bench.draft));
        REQUIRE(program);

        const LinkChange never[] = {{.link = {0}, .at = Time(duration_limit / 2)}};
        const Timeline trains = run_audited(bench.graph, *program, LinkModel::messages);
        const Timeline singly =
            run_audited(bench.graph, *program, {.links = LinkModel::messages, .changes = never});
        CHECK(to_text(trains, *program) == to_text(singly, *program));
        CHECK(std::ranges::equal(trains.carried, singly.carried));
        CHECK(std::ranges::equal(trains.busy, singly.busy));
        CHECK(trains.messages == singly.messages);
        CHECK(trains.messages == devices * (devices - 1) + 2 * 9 * 8);
        CHECK(trains.events == singly.events);
    }
}

TEST_CASE("an algorithm that does not do a collective leaves it to the choice, as NCCL_ALGO does") {
    Bench bench(cluster(1, 4), {}, {}, "tree");
    const GroupId all = bench.group(0, 4);
    const auto rule = [&](CollectiveKind kind) { return bench.collective(all, kind, 1_MiB).rule; };
    CHECK(rule(CollectiveKind::all_reduce) == &(*find_algorithm("tree"))->rule);
    CHECK(rule(CollectiveKind::all_gather) == &(*find_algorithm("ring"))->rule);
    CHECK(rule(CollectiveKind::all_to_all) == &(*find_algorithm("direct"))->rule);
}

}  // namespace fourfold
