#include "workloads/fold.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "results/measure.hpp"
#include "results/traffic.hpp"
#include "tests/support/training.hpp"
#include "topology/routes.hpp"
#include "workloads/transfers.hpp"

namespace fourfold {
namespace {

using enum SplitAxis;

/// Choices that are the same on every machine.
class Draw {
  public:
    explicit Draw(std::uint32_t seed) : engine_(seed) {}
    template <class T>
    T of(std::initializer_list<T> values) {
        return values.begin()[engine_() % values.size()];
    }
    bool coin() { return of({false, true}); }
    std::uint32_t number() { return static_cast<std::uint32_t>(engine_()); }
    std::array<SplitAxis, 4> order() {
        std::array order{tensor, context, pipeline, data};
        for (std::size_t i = 3; i > 0; --i) std::swap(order[i], order[engine_() % (i + 1)]);
        return order;
    }

  private:
    std::mt19937 engine_;
};

std::string text_of(const TrainingStep& step, const ClusterShape& shape) {
    const Split& split = step.split;
    std::string order;
    for (const SplitAxis axis : split.order) order += "tcpd"[static_cast<int>(axis)];
    return fmt::format(
        "t{} c{} p{} d{} order {} {} x {} sharding {} sp {} sg {} overlap {}{} blocking {} "
        "micro-batches {} {} on {} x {}, {}, {} of {} in pods of {}, {} levels, "
        "{} and {} to 1",
        split.tensor, split.context, split.pipeline, split.data, order, step.schedule->name,
        step.chunks, static_cast<int>(split.sharding), split.sequence_parallel,
        split.scatter_gather, step.overlap_gradients, step.overlap_parameters,
        step.point_to_point == PointToPoint::blocking, step.micro_batches(),
        step.algorithm == nullptr ? "auto" : step.algorithm->name, shape.nodes,
        shape.devices_per_node, shape.node->shape->name, shape.fabric->shape->name,
        shape.fabric->parameters.leaf_ports, shape.fabric->parameters.pod_leaves,
        shape.fabric->parameters.levels, shape.fabric->parameters.oversubscription,
        shape.fabric->parameters.core_oversubscription);
}

struct Outcome {
    bool is_folded = false;
    std::size_t devices = 0;
    std::optional<Fold> fold;
    Measures measures;
    std::vector<TrafficRow> traffic;
};

Outcome simulated(const TrainingStep& step, const Graph& graph, bool fold) {
    const Result<Lowered> lowered = lower(step, graph, fold ? Folding::exact : Folding::none);
    REQUIRE_MESSAGE(lowered.has_value(), (lowered ? "" : lowered.error().what));
    const Timeline timeline = run_audited(graph, lowered->program, LinkModel::flows);
    return {lowered->folded, lowered->devices.size(), lowered->fold,
            measure(step, *lowered, timeline), traffic(graph, *lowered, timeline)};
}

// Chains of operations as one task change nothing that is reported: times, and the traffic table of
// the whole step.
void check_chains(const TrainingStep& step, const Graph& graph, const Outcome& whole) {
    const Result<Lowered> lowered = lower(step, graph, Folding::exact, Detail::chains);
    REQUIRE(lowered.has_value());
    Result<Timeline> timeline = simulate(graph, lowered->program, {});
    REQUIRE(timeline.has_value());
    add_chain_traffic(*lowered, *timeline);
    const Measures joined = measure(step, *lowered, *timeline);
    CHECK(joined.step_time == whole.measures.step_time);
    CHECK(joined.time == whole.measures.time);
    const std::vector<TrafficRow> rows = traffic(graph, *lowered, *timeline);
    REQUIRE(rows.size() == whole.traffic.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        CAPTURE(i);
        const TrafficRow& a = rows[i];
        const TrafficRow& b = whole.traffic[i];
        CHECK(a.axis == b.axis);
        CHECK(a.operation == b.operation);
        CHECK(a.operations == b.operations);
        CHECK(a.bytes == b.bytes);
        CHECK(a.bytes_min == b.bytes_min);
        CHECK(a.bytes_max == b.bytes_max);
        CHECK(a.wire_bytes == b.wire_bytes);
        CHECK(a.blocking == b.blocking);
        CHECK(a.window == b.window);
        CHECK(a.transfer == b.transfer);
        CHECK(a.device == b.device);
        CHECK(a.link == b.link);
        CHECK(a.link_share == b.link_share);
    }
}

/// Returns: whether the step could be folded.
bool same_folded(const TrainingStep& step, const Graph& graph) {
    const Outcome whole = simulated(step, graph, false);
    const Outcome folded = simulated(step, graph, true);
    CHECK(whole.devices == static_cast<std::size_t>(Placement(step.split).devices()));
    CHECK(folded.devices == (folded.is_folded ? folded.fold->devices.size() : whole.devices));
    CHECK(folded.measures.step_time == whole.measures.step_time);
    for (std::size_t i = 0; i < time_class_count; ++i) {
        CAPTURE(name_of(static_cast<TimeClass>(i)));
        CHECK(folded.measures.time[i] == whole.measures.time[i]);
    }
    CHECK(folded.measures.hfu == doctest::Approx(whole.measures.hfu).epsilon(1e-12));
    if (folded.is_folded) check_chains(step, graph, whole);
    return folded.is_folded;
}

/// Switched links of 25 GB/s between nodes of a switch, or in other shapes.
ClusterShape machine(std::uint32_t nodes, std::uint32_t devices_per_node,
                     std::string_view node = "switch", std::string_view fabric = "switch") {
    ClusterShape shape;
    shape.nodes = nodes;
    shape.devices_per_node = devices_per_node;
    shape.node = fabric_of(node, {300_GBps, 1500_ns, 1.0});
    shape.fabric = fabric_of(fabric, {25_GBps, 2500_ns, 1.0});
    return shape;
}

/// All ways to write `devices`, a power of two, as tensor x context x pipeline x data.
std::vector<Split> splits_of(std::int64_t devices) {
    std::vector<Split> all;
    for (std::int64_t t = 1; t <= devices; t *= 2) {
        for (std::int64_t c = 1; t * c <= devices; c *= 2) {
            for (std::int64_t p = 1; t * c * p <= devices; p *= 2) {
                all.push_back(
                    {.tensor = t, .context = c, .pipeline = p, .data = devices / (t * c * p)});
            }
        }
    }
    return all;
}

/// A step whose kernels and messages take about as long as each other.
TrainingStep small_step(const Split& split, const Schedule* schedule) {
    TrainingStep step = step_of(gpt(2 * split.pipeline, 256, 16, 1024, 64));
    step.split = split;
    step.schedule = schedule;
    step.chunks = schedule->name == "interleaved_1f1b" ? 2 : 1;
    return step;
}

void draw_details(Draw& draw, TrainingStep& step) {
    Split& split = step.split;
    split.order = draw.order();
    split.sequence_parallel = draw.coin() && 64 / split.context % split.tensor == 0;
    split.scatter_gather = draw.coin();
    step.overlap_gradients = draw.coin();
    step.overlap_parameters = draw.coin();
    step.point_to_point = draw.of({PointToPoint::blocking, PointToPoint::overlapped});
    step.bucket = draw.of({64'000_B, 1'000'000_B});
    set_micro_batches(step, split.pipeline * draw.of({1, 2}));
}

constexpr std::array shardings{Sharding::none, Sharding::optimizer, Sharding::gradients,
                               Sharding::weights};

/// What a sweep over the details of real runs would meet, and what it would not.
TrainingStep random_step(Draw& draw) {
    Split split;
    split.tensor = draw.of({1, 1, 2, 4, 8});
    split.context = draw.of({1, 1, 2, 4});
    split.pipeline = draw.of({1, 2, 3, 4});
    split.data = draw.of({1, 2, 3, 4, 8});
    split.sharding = draw.of({shardings[0], shardings[1], shardings[2], shardings[3]});
    split.shard_unit = draw.of({ShardUnit::layer, ShardUnit::model});
    split.vocabulary_parallel = draw.coin();
    TrainingStep step = small_step(split, schedules()[draw.of<std::size_t>({0, 1, 2, 3, 4})]);
    draw_details(draw, step);
    step.model.tied_embeddings = draw.coin();
    step.overlap_optimizer = draw.coin();
    step.recompute = draw.of({Recompute::none, Recompute::selective, Recompute::full});
    step.framework.tensor_overlap = draw.of({0.0, 0.3});
    step.framework.sharding_contention = draw.of({0.0, 0.2});
    if (draw.coin()) {
        step.framework.host = {
            .forward_launch = 4_us, .backward_launch = 2_us, .micro_batch = 30_us, .step = 50_us};
    }
    if (draw.coin()) {
        step.node = {.message_overhead = 5_us,
                     .message_rate = 20_GBps,
                     .collective_start = 10_us,
                     .collective_per_sqrt_mib = 5_us,
                     .collective_edge = 0.3};
        step.fabric = {.message_overhead = 25_us};
    }
    const auto algorithm = draw.of<std::size_t>({0, 0, 0, 1, 2, 3, 4, 5, 6});
    if (algorithm > 0) step.algorithm = algorithms()[algorithm - 1];
    return step;
}

/// 1 to `last`, and others that have found mistakes: calls that wait for all their members do, with
/// other stages on the links above; a host that is behind when a chain begins.
std::vector<std::uint32_t> seeds(std::uint32_t last, std::initializer_list<std::uint32_t> others) {
    std::vector<std::uint32_t> all(last);
    std::iota(all.begin(), all.end(), 1U);
    all.insert(all.end(), others);
    return all;
}

ClusterShape random_machine(Draw& draw, std::int64_t devices) {
    const auto per_node = draw.of({1U, 2U, 3U, 4U, 8U});
    ClusterShape shape = machine(static_cast<std::uint32_t>(devices - 1) / per_node + 1, per_node,
                                 draw.of({"switch", "fully_connected"}),
                                 draw.of({"switch", "fat_tree", "fat_tree", "rails", "sites"}));
    shape.nodes += draw.of({0U, 0U, 1U});
    shape.node->link.bandwidth = draw.of({300_GBps, 50_GBps, 5_GBps});
    shape.node->link.latency = draw.of({0_ns, 1500_ns, 4_us});
    shape.fabric->link.bandwidth = draw.of({25_GBps, 5_GBps, 1_GBps});
    shape.fabric->link.latency = draw.of({0_ns, 2500_ns});
    if (shape.fabric->shape->name == "fat_tree") {
        shape.fabric->parameters.leaf_ports = draw.of({1, 2, 3, 4, 6, 8, 16});
        shape.fabric->parameters.levels = draw.of({2, 3});
        shape.fabric->parameters.oversubscription = draw.of({1, 2, 3, 4});
        if (shape.fabric->parameters.levels == 3) {
            shape.fabric->parameters.pod_leaves = draw.of({1, 2, 4});
            shape.fabric->parameters.core_oversubscription = draw.of({1, 2});
        }
    } else if (shape.fabric->shape->name == "rails") {
        shape.fabric->parameters.leaf_ports = draw.of({1, 2, 3, 4, 8});
        shape.fabric->parameters.oversubscription = draw.of({1, 2, 3, 4});
    } else if (shape.fabric->shape->name == "sites") {
        shape.nodes += shape.nodes % 2;
        shape.fabric->parameters.wan = {draw.of({100_GBps, 5_GBps}), draw.of({0_ns, 1_ms}), 1.0};
    }
    return shape;
}

}  // namespace

TEST_CASE("folded equals unfolded to the picosecond for every split with every schedule") {
    constexpr std::uint32_t seed = 20241130;
    Draw draw(seed);
    int cases = 0, on_rails = 0, not_on_rails = 0;
    const auto run = [&](TrainingStep step) {
        draw_details(draw, step);
        const std::uint32_t nodes = draw.of({1U, 2U, 4U, 8U, 16U});
        ClusterShape shape = machine(nodes, 16 / nodes, draw.of({"switch", "fully_connected"}),
                                     draw.of({"switch", "fat_tree", "rails", "sites"}));
        const std::string_view fabric = shape.fabric->shape->name;
        ShapeParameters& parameters = shape.fabric->parameters;
        if (fabric == "fat_tree" || fabric == "rails") {
            parameters.leaf_ports = draw.of({2, 4, 8});
            parameters.oversubscription = draw.of({1, 2, 4});
        }
        if (fabric == "fat_tree" && draw.coin()) {
            parameters.levels = 3;
            parameters.pod_leaves = draw.of({1, 2, 4});
        }
        if (fabric == "sites") parameters.wan = {25_GBps, 100_us, 1.0};
        CAPTURE(seed);
        CAPTURE(text_of(step, shape));
        const Graph graph = seal_cluster(shape);
        if (!check(step, graph.devices().size())) return;  // interleaving needs 2 ranks
        REQUIRE(fold_of(step, graph).has_value());
        const bool folded = same_folded(step, graph);
        CHECK((folded || fabric == "rails"));  // messages may go through devices between
        ++cases;
        if (fabric == "rails") ++(folded ? on_rails : not_on_rails);
    };
    for (const Split& split : splits_of(16)) {
        for (const Schedule* schedule : schedules()) {
            for (const Sharding sharding : shardings) {
                TrainingStep step = small_step(split, schedule);
                step.split.sharding = sharding;
                run(step);
                run(step);  // with other details
            }
        }
    }
    MESSAGE(cases, " steps: 0 ps apart");
    CHECK(cases == 1280);
    CHECK(on_rails > 200);
    CHECK(not_on_rails > 20);
}

TEST_CASE("folded equals unfolded to the picosecond on random small clusters") {
    int folded = 0, unalike = 0;
    for (const std::uint32_t seed : seeds(1200, {17605, 25444})) {
        Draw draw(seed);
        const TrainingStep step = random_step(draw);
        const std::int64_t devices = Placement(step.split).devices();
        const ClusterShape shape = random_machine(draw, devices);
        CAPTURE(seed);
        CAPTURE(text_of(step, shape));
        if (devices > 32) continue;
        const Graph graph = seal_cluster(shape);
        if (!check(step, graph.devices().size())) continue;
        if (fold_of(step, graph).has_value()) {
            ++(same_folded(step, graph) ? folded : unalike);
        } else {
            ++unalike;
        }
    }
    CHECK(folded > 150);
    CHECK(unalike > 100);
}

TEST_CASE("a slow device is alone, and so are the places that share a group or a block with it") {
    TrainingStep step = small_step({.tensor = 2, .data = 4}, schedule_named("1f1b"));
    const Graph graph = cluster(2, 4);
    const auto folded = [&] {
        const std::optional<Fold> fold = fold_of(step, graph);
        REQUIRE(fold.has_value());
        CHECK(std::accumulate(fold->counts.begin(), fold->counts.end(), std::int64_t{0}) == 8);
        return std::pair(fold->devices, fold->counts);
    };
    using Devices = std::vector<DeviceId>;
    using Counts = std::vector<std::int64_t>;
    CHECK(folded() == std::pair(Devices{{0}}, Counts{8}));
    // Device 5 is tensor rank 1, data rank 2. Data rank 3 shares its node, 0 and 1 do not.
    step.slow_devices = {{.device = 5, .factor = 1.1}};
    CHECK(folded() == std::pair(Devices{{0}, {1}, {4}, {5}, {6}, {7}}, Counts{2, 2, 1, 1, 1, 1}));
    // Two slow ones in one node leave the other node's data ranks alike.
    step.slow_devices.push_back({.device = 6, .factor = 1.1});
    CHECK(folded() == std::pair(Devices{{0}, {1}, {4}, {5}, {6}, {7}}, Counts{2, 2, 1, 1, 1, 1}));
    step.slow_devices = {{.device = 0, .factor = 1.1}, {.device = 5, .factor = 1.1}};
    CHECK(folded().first.size() == 8);
}

/// The machine with some devices' own links slower, to or from them.
Graph with_slow_ports(const ClusterShape& shape, std::initializer_list<std::uint32_t> ports,
                      double factor) {
    Result<GraphDraft> draft = build_cluster(shape);
    REQUIRE(draft.has_value());
    for (const std::uint32_t number : ports) {
        Link& link = draft->links[number % draft->links.size()];
        const Vertex& from = draft->vertices[link.from.value];
        const Vertex& to = draft->vertices[link.to.value];
        if (!from.is_device && !to.is_device) continue;
        const double rate = static_cast<double>(link.spec.bandwidth.value) * factor;
        link.spec.bandwidth = {static_cast<std::int64_t>(rate)};
        for (const Vertex* end : {&from, &to}) {
            if (end->is_device) draft->odd.push_back(end->device);
        }
    }
    Result<Graph> graph = seal(std::move(*draft));
    REQUIRE(graph.has_value());
    return std::move(*graph);
}

TEST_CASE("folded equals unfolded with slow devices and slow ports, to the picosecond") {
    int cases = 0;
    for (const std::uint32_t seed : seeds(900, {7553})) {
        Draw draw(seed);
        TrainingStep step = random_step(draw);
        const std::int64_t devices = Placement(step.split).devices();
        const ClusterShape shape = random_machine(draw, devices);
        if (devices > 32 || devices < 4) continue;
        const auto any = [&] { return draw.number() % static_cast<std::uint32_t>(devices); };
        for (std::uint32_t slow = draw.of({0U, 1U, 1U, 2U}); slow > 0; --slow) {
            step.slow_devices.push_back({any(), draw.of({1.3, 2.0, 0.7})});
        }
        const bool ports = step.slow_devices.empty() || draw.coin();
        const Graph graph = ports ? with_slow_ports(shape, {draw.number()}, draw.of({0.5, 0.1}))
                                  : seal_cluster(shape);
        CAPTURE(seed);
        CAPTURE(text_of(step, shape));
        if (!check(step, graph.devices().size()) || !fold_of(step, graph)) continue;
        if (same_folded(step, graph)) ++cases;
    }
    MESSAGE(cases, " cases: 0 ps apart");
    CHECK(cases > 100);
}

TEST_CASE("more tasks than can be simulated are refused, folded ones are counted once") {
    TrainingStep step = small_step({.tensor = 2, .data = 4}, schedule_named("1f1b"));
    set_micro_batches(step, 4'000'000);
    const std::optional<Fold> fold = fold_of(step, cluster(2, 4));
    CHECK(check_tasks(step, fold).has_value());
    const Result<void> whole = check_tasks(step, std::nullopt);
    REQUIRE_FALSE(whole.has_value());
    CHECK(whole.error().where == "batch.global");
    CHECK(whole.error().what ==
          "4000000 micro-batches make about 9.0e+08 tasks, more than the 2e+08 that can be "
          "simulated; use larger micro-batches or fewer data ranks");
}

TEST_CASE("neighbours in a ring or a torus are not alike: nothing is folded") {
    const TrainingStep step = small_step({.tensor = 2, .data = 4}, schedule_named("1f1b"));
    CHECK_FALSE(fold_of(step, ring(8, {25_GBps, 1_us, 1.0})).has_value());
    CHECK_FALSE(fold_of(step, seal_cluster(machine(2, 4, "ring"))).has_value());
    CHECK_FALSE(fold_of(step, seal_cluster(machine(4, 2, "switch", "ring"))).has_value());
    CHECK_FALSE(
        fold_of(step, seal_cluster(machine(4, 2, "switch", "fully_connected"))).has_value());
    ClusterShape torus = machine(2, 4, "torus");
    torus.node->parameters.dimensions = {2, 2};
    CHECK_FALSE(fold_of(step, seal_cluster(torus)).has_value());
    torus = machine(4, 2, "switch", "torus");
    torus.fabric->parameters.dimensions = {2, 2};
    CHECK_FALSE(fold_of(step, seal_cluster(torus)).has_value());
}

TEST_CASE("uplinks carry what all that are like a simulated transfer put on them") {
    // 2 data groups of 4, one for each tensor rank; a leaf has 2 data ranks of both on 4 ports. Of
    // its 2 uplinks each carries half of what both rings send out of the leaf.
    const TrainingStep step = small_step({.tensor = 2, .data = 4}, schedule_named("1f1b"));
    ClusterShape shape = machine(4, 2, "switch", "fat_tree");
    shape.fabric->parameters.leaf_ports = 4;
    shape.fabric->parameters.oversubscription = 2;
    const Graph graph = seal_cluster(shape);
    const std::optional<Fold> fold = fold_of(step, graph);
    REQUIRE(fold.has_value());
    CHECK(fold->devices == std::vector<DeviceId>{{0}});
    CHECK(fold->sections[1] == std::map<std::uint32_t, std::int64_t>{{0, 2}});
    Routes routes(graph);
    ProgramDraft draft;
    Transfers transfers(routes, draft, *find_algorithm("ring"), {}, {}, &*fold);
    const GroupId group = transfers.add_group({{0}, {2}, {4}, {6}});
    const auto id = transfers.collective(group, CollectiveKind::all_gather, 4_MiB);
    REQUIRE(id.has_value());
    int uplinks = 0;
    for (const LinkUse& use : draft.transfer(*id).uses) {
        const Link& link = graph[use.link];
        const bool is_uplink = !graph[link.from].is_device && !graph[link.to].is_device;
        // 3 messages of 1 MiB over each edge of the ring.
        CHECK(use.bytes == (is_uplink ? 1'572'864_B : 3_MiB));
        CHECK(use.copies == (is_uplink ? 2 : 1));
        uplinks += is_uplink ? 1 : 0;
    }
    CHECK(uplinks == 4);  // of the first leaf, 2 in each direction
    CHECK(same_folded(step, graph));
}

TEST_CASE("with ecmp no two devices meet the network alike: nothing is folded") {
    const TrainingStep step = small_step({.tensor = 2, .data = 4}, schedule_named("1f1b"));
    ClusterShape shape = machine(4, 2, "switch", "fat_tree");
    shape.fabric->parameters.leaf_ports = 4;
    auto draft = build_cluster(shape);
    REQUIRE(draft.has_value());
    draft->routing.kind = Routing::Kind::ecmp;
    const Result<Graph> graph = seal(std::move(*draft));
    REQUIRE(graph.has_value());
    CHECK_FALSE(fold_of(step, *graph).has_value());
    CHECK_FALSE(same_folded(step, *graph));
}

TEST_CASE("groups that lie across nodes in several ways are told apart") {
    const Graph nodes_of_8 = seal_cluster(machine(3, 8));
    const auto simulated_of = [&](const Split& split) {
        const auto fold = fold_of(small_step(split, schedule_named("1f1b")), nodes_of_8);
        return fold ? fold->devices.size() : 0;
    };
    CHECK(simulated_of({.tensor = 8, .data = 3}) == 1);
    CHECK(simulated_of({.tensor = 4, .data = 6}) == 1);
    CHECK(simulated_of({.tensor = 6, .data = 4}) == 0);  // the second group lies in two nodes
    CHECK(simulated_of({.tensor = 3, .data = 8}) == 0);
    CHECK(simulated_of({.tensor = 2, .data = 2}) == 1);  // within one node
    CHECK(simulated_of({.tensor = 2, .data = 3}) == 3);  // 6 of 8: the next would lie otherwise
    CHECK(simulated_of({.tensor = 4, .data = 3}) == 3);  // the last node is half empty
    CHECK(simulated_of({.tensor = 2, .context = 3, .data = 4}) == 12);

    // Nodes of 4 on leaves of 6 ports: every other node has ports on two leaves.
    ClusterShape shape = machine(6, 4, "switch", "fat_tree");
    shape.fabric->parameters.leaf_ports = 6;
    CHECK(seal_cluster(shape).blocks().empty());
}

TEST_CASE("a collective that loads its members unevenly tells them apart where it is not alone") {
    // A tree's root sends and receives less than the members in the middle. Beside gradients of
    // tensor groups in the same node, or messages through the same ports, each device sees
    // something else.
    TrainingStep step = small_step({.data = 8}, schedule_named("1f1b"));
    step.algorithm = *find_algorithm("tree");
    set_micro_batches(step, 2);
    const auto devices = [&](const Graph& graph) {
        const auto lowered = lower(step, graph, Folding::exact);
        REQUIRE(lowered.has_value());
        CHECK(lowered->folded == (lowered->devices.size() < graph.devices().size()));
        CHECK(same_folded(step, graph) == lowered->folded);
        return lowered->devices.size();
    };
    CHECK(devices(cluster(1, 8)) == 1);  // gradients, and nothing else
    step.split = {.tensor = 4, .data = 2};
    CHECK(devices(cluster(2, 4)) == 1);  // tensor groups in nodes, data groups across
    step.split = {.pipeline = 2, .data = 4};
    // Messages of the pipeline through the same ports. Both of the two trees of 4 send along
    // 1 - 0 - 3 - 2 and 2 - 3 - 0 - 1: ranks 0 and 3 carry as much as each other, 1 and 2 less.
    CHECK(devices(cluster(8, 1)) == 4);
    step.algorithm = *find_algorithm("ring");
    CHECK(devices(cluster(8, 1)) == 2);
}

TEST_CASE("a host that is behind when a list begins holds up only what it issues") {
    // Gradients are issued behind the last kernel: the next forward, which costs the host nothing,
    // begins while it still works on them; where forwards cost it too, they wait.
    TrainingStep step = small_step({.tensor = 2, .data = 2}, schedule_named("1f1b"));
    step.split.sharding = Sharding::gradients;
    step.overlap_gradients = true;
    step.bucket = 64'000_B;
    set_micro_batches(step, 4);
    const Graph graph = cluster(2, 2);
    for (const Duration forward : {0_us, 100_us}) {
        CAPTURE(forward);
        step.framework.host = {.forward_launch = forward, .backward_launch = 100_us};
        CHECK(same_folded(step, graph));
    }
}

TEST_CASE("on rails a slow port sends messages through a device that takes no part: in full") {
    const TrainingStep step = small_step({.pipeline = 2, .data = 2}, schedule_named("1f1b"));
    ClusterShape shape = machine(2, 2, "switch", "rails");
    shape.fabric->parameters.leaf_ports = 1;
    CHECK(same_folded(step, seal_cluster(shape)));
    auto draft = build_cluster(shape);
    REQUIRE(draft.has_value());
    for (Link& link : draft->links) {
        const Vertex& from = draft->vertices[link.from.value];
        const bool is_slow =
            from.name == "node0.device0" && draft->vertices[link.to.value].name == "leaf0";
        if (is_slow) link.spec.latency *= 3;
    }
    draft->odd = {DeviceId{0}};
    const auto graph = seal(std::move(*draft));
    REQUIRE(graph.has_value());
    CHECK_FALSE(same_folded(step, *graph));
}

TEST_CASE("replicas along two axes are told apart along both") {
    TrainingStep step =
        small_step({.context = 2, .pipeline = 2, .data = 4}, schedule_named("1f1b"));
    step.algorithm = *find_algorithm("tree");
    step.overlap_gradients = true;
    set_micro_batches(step, 2);
    CHECK(same_folded(step, cluster(16, 1)));
}

TEST_CASE("bytes that cannot be cut evenly among the spines are rounded alike") {
    // 2 tokens of 4 * 2 bytes are 16 bytes: 2 spines carry 8 each. With 3 spines each carries 6,
    // and 3 devices of a leaf put 18 on it in the time of 16.
    TrainingStep step = step_of(gpt(2, 4, 1, 128, 2));
    step.split.pipeline = 2;
    step.split.data = 3;
    step.split.order = {data, tensor, context, pipeline};
    set_stage_times(step, {.forward = 1_us, .input_gradient = 1_us, .weight_gradient = 1_us});
    step.model.tied_embeddings = false;
    set_micro_batches(step, 2);
    for (const std::int64_t ports : {1, 3}) {
        ClusterShape shape = machine(6, 1, "switch", "fat_tree");
        shape.fabric->parameters.leaf_ports = ports;
        CHECK(same_folded(step, seal_cluster(shape)));
    }
}

}  // namespace fourfold
