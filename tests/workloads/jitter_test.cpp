#include "workloads/jitter.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/support/network.hpp"
#include "tests/support/training.hpp"
#include "workloads/fold.hpp"

namespace fourfold {
namespace {

TrainingStep small_step() {
    TrainingStep step = step_of(gpt(8, 512, 8, 1024, 128));
    step.split.tensor = 2;
    step.split.pipeline = 2;
    step.split.data = 2;
    set_micro_batches(step, 4);
    return step;
}

TEST_CASE("factors have the mean 1 and the spread that was asked for") {
    for (const double spread : {0.01, 0.1, 0.5}) {
        CAPTURE(spread);
        const JitterFactors factors(spread, 7);
        constexpr int count = 400'000;
        double sum = 0, squares = 0;
        for (int i = 0; i < count; ++i) {
            const double factor =
                factors({JitterKey::Of::kernel, static_cast<std::uint32_t>(i % 64),
                         static_cast<std::uint32_t>(i / 64)});
            REQUIRE(factor > 0);
            sum += factor;
            squares += (factor - 1) * (factor - 1);
        }
        // Four standard errors of the mean are spread * 4 / sqrt(400,000) = 0.0063 of it.
        CHECK(std::abs(sum / count - 1) < 0.0064 * spread);
        // What is missing beyond 6 standard deviations shows in the largest.
        CHECK(std::sqrt(squares / count) == doctest::Approx(spread).epsilon(0.015).scale(0));
    }
}

TEST_CASE("a draw is the same bits on every machine, and each has its own") {
    const JitterFactors factors(0.1, 7);
    CHECK(factors({JitterKey::Of::kernel, 0, 0}) == 0x1.d35ea0359acfdp-1);
    CHECK(factors({JitterKey::Of::message, 0, 0}) == 0x1.cdd26d4a95034p-1);
    CHECK(factors({JitterKey::Of::kernel, 1, 0}) == 0x1.fb21178be69ccp-1);
    CHECK(factors({JitterKey::Of::kernel, 0, 1}) == 0x1.0f51279f07c5cp+0);
    CHECK(JitterFactors(0.1, 8)({JitterKey::Of::kernel, 0, 0}) == 0x1.e95b7819079ep-1);
}

TEST_CASE("the same seed gives the same times, another seed others, and no spread what there was") {
    const Graph graph = cluster(4, 2);
    for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
        const auto ends = [&](const Jitter& jitter) {
            TrainingStep step = small_step();
            step.jitter = jitter;
            const Run run = run_step(step, graph, links);
            return std::vector(run.timeline.end.begin(), run.timeline.end.end());
        };
        const auto plain = ends({});
        CHECK(ends({.compute = 0, .links = 0, .seed = 7}) == plain);
        const auto seven = ends({.compute = 0.02, .links = 0.01, .seed = 7});
        CHECK(ends({.compute = 0.02, .links = 0.01, .seed = 7}) == seven);
        CHECK(ends({.compute = 0.02, .links = 0.01, .seed = 8}) != seven);
        CHECK(ends({.compute = 0, .links = 0.01, .seed = 7}) != plain);
        CHECK(ends({.compute = 0.02, .links = 0, .seed = 7}) != plain);
    }
}

TEST_CASE("every kernel has a factor of its own, which is the draw of its device and number") {
    const Graph graph = cluster(4, 2);
    TrainingStep step = small_step();
    const auto plain = lower(step, graph);
    step.jitter = {.compute = 0.1, .links = 0, .seed = 3};
    const auto jittered = lower(step, graph, Folding::exact);
    REQUIRE(plain);
    REQUIRE(jittered);
    REQUIRE(jittered->program.tasks() == plain->program.tasks());
    const JitterFactors factors(0.1, 3);
    std::vector<std::uint32_t> made(8, 0);
    for (const TaskId task : jittered->labels.keys()) {
        if (!is_kernel(jittered->program, task, jittered->labels[task])) continue;
        const std::uint32_t device = jittered->program.device(task).value;
        const double factor = factors({JitterKey::Of::kernel, device, made[device]++});
        CHECK(jittered->program.duration(task) == scale(plain->program.duration(task), factor));
    }
}

TEST_CASE("where times jitter nobody stands for others") {
    const Graph graph = cluster(4, 2);
    TrainingStep step = small_step();
    CHECK(fold_of(step, graph));
    step.jitter = {.compute = 0.02, .links = 0, .seed = 7};
    CHECK_FALSE(fold_of(step, graph));
    step.jitter = {.compute = 0, .links = 0.02, .seed = 7};
    CHECK_FALSE(fold_of(step, graph));
    step.jitter = {.compute = 0, .links = 0, .seed = 7};
    CHECK(fold_of(step, graph));
}

TEST_CASE("a stretched message takes its factor's time in both models, in turns too") {
    // 25,000 B at 25 GB/s take 1 us, and 5 us of latency: twice that is 12 us.
    for (const SimulateOptions options :
         {SimulateOptions{.links = LinkModel::flows}, SimulateOptions{.links = LinkModel::messages},
          SimulateOptions{.links = LinkModel::messages, .quantum = 10_KiB}}) {
        Network network("a -- b: 25 GB/s, 5 us");
        const auto message = network.message("a", "b", {25'000});
        network.draft.stretch_send(message.send, 2);
        const Timeline timeline = network.run(options);
        CHECK(ps(timeline.end[message.send]) == 2'000'000);
        CHECK(ps(timeline.end[message.receive]) == 12'000'000);
        CHECK(timeline.carried[network.link("a -> b")] == 25'000_B);
    }
}

TEST_CASE("a stretched collective takes its factor's time in both models") {
    for (const LinkModel links : {LinkModel::flows, LinkModel::messages}) {
        Network network("a -- b: 25 GB/s, 5 us");
        const GroupId group = network.transfers.add_group({DeviceId{0}, DeviceId{1}});
        const auto transfer =
            network.transfers.collective(group, CollectiveKind::all_reduce, {50'000});
        const CollectiveId id = network.draft.add_collective(*transfer);
        network.draft.part(network.stream("a"), id, 0);
        network.draft.part(network.stream("b"), id, 1);
        network.draft.stretch_collective(id, 1.5);
        // 2 (25,000 B / 25 GB/s + 5 us) = 12 us, times 1.5
        CHECK(ps(network.run(links).finish) == 18'000'000);
    }
}

}  // namespace
}  // namespace fourfold
