#include "results/jobs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/training.hpp"

namespace fourfold {
namespace {

constexpr LinkModel both[] = {LinkModel::flows, LinkModel::messages};

std::vector<DeviceId> numbered(std::initializer_list<std::uint32_t> numbers) {
    std::vector<DeviceId> devices;
    for (const std::uint32_t number : numbers) devices.push_back({number});
    return devices;
}

/// Data parallel over all its devices.
Job data_job(std::string name, std::initializer_list<std::uint32_t> devices) {
    TrainingStep step = step_of(gpt(8, 256, 8, 1000, 128));
    step.split.data = static_cast<std::int64_t>(devices.size());
    step.devices = numbered(devices);
    set_micro_batches(step, 2);
    return {std::move(name), step};
}

std::vector<JobEvaluation> together(const std::vector<Job>& jobs, const Graph& graph,
                                    LinkModel links) {
    for (const Job& job : jobs) {
        const auto sound = check(job.step, graph.devices().size());
        REQUIRE_MESSAGE(sound.has_value(), (sound ? "" : sound.error().what));
    }
    auto made = evaluate_jobs(jobs, graph, {.links = links, .audit = true});
    REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().what));
    return std::move(*made);
}

}  // namespace

TEST_CASE("what jitters alone jitters alike beside others") {
    const Graph graph = cluster(4, 2);
    for (const LinkModel links : both) {
        std::vector<Job> jobs{data_job("a", {0, 1, 6, 7}), data_job("b", {2, 3, 4, 5})};
        const Duration steady = together(jobs, graph, links)[0].alone;
        for (Job& job : jobs) job.step.jitter = {.compute = 0.1, .links = 0.2, .seed = 7};
        for (const JobEvaluation& job : together(jobs, graph, links)) {
            CHECK(job.evaluation.measures.step_time == job.alone);
            CHECK(job.alone != steady);
        }
    }
}

TEST_CASE("jobs that share no link do not slow each other, wherever they sit") {
    const Graph graph = cluster(4, 2);
    for (const LinkModel links : both) {
        const auto made =
            together({data_job("a", {0, 1, 6, 7}), data_job("b", {2, 3, 4, 5})}, graph, links);
        REQUIRE(made.size() == 2);
        for (const JobEvaluation& job : made) {
            CHECK(job.slowdown() == 1);
            CHECK(job.alone == job.evaluation.measures.step_time);
            CHECK(job.evaluation.measures.devices == 4);
            CHECK(job.evaluation.warnings.empty());
        }
        // The same job, on nodes that are joined alike.
        CHECK(made[0].alone == made[1].alone);
        CHECK(made[1].evaluation.traffic.front().device >= DeviceId{2});
    }
}

TEST_CASE("two jobs whose gradients cross one trunk take twice as long for them") {
    // Each reduces over two devices, one on each side, after 3 ms of work: alone the trunk is its
    // own, together each has half of it.
    std::vector<Job> jobs{data_job("a", {0, 2}), data_job("b", {1, 3})};
    for (Job& job : jobs) {
        set_stage_times(job.step, {1_ms, 1_ms, 1_ms});
        set_micro_batches(job.step, 1);
        job.step.overlap_gradients = false;
        job.step.algorithm = *find_algorithm("ring");
    }
    const Graph graph = graph_of(trunk);
    const auto fluid = together(jobs, graph, LinkModel::flows);
    for (const JobEvaluation& job : fluid) {
        const Duration reduce = job.alone - 3_ms;
        CHECK(reduce > 100_us);
        const Duration shared = job.evaluation.measures.step_time - 3_ms;
        CHECK(std::abs((shared - 2 * reduce).count()) <= 4);  // rates are whole numbers
    }
    // Message by message one of two is served first, but not all of its messages.
    const auto served = together(jobs, graph, LinkModel::messages);
    const Duration reduce = served[0].alone - 3_ms;
    CHECK(served[0].alone == fluid[0].alone);
    Duration last{};
    for (const JobEvaluation& job : served) {
        CHECK(job.evaluation.measures.step_time > job.alone);
        last = std::max(last, job.evaluation.measures.step_time);
    }
    CHECK(last == 3_ms + 2 * reduce);
}

TEST_CASE("a job alone is what a scenario of its own would be") {
    const Graph graph = cluster(2, 2);
    for (const LinkModel links : both) {
        Job whole = data_job("whole", {0, 1, 2, 3});
        const auto made = together({whole}, graph, links);
        whole.step.devices.clear();
        const auto plain = evaluate(whole.step, graph, {.links = links, .audit = true});
        REQUIRE(plain.has_value());
        CHECK(made.front().alone == plain->measures.step_time);
        CHECK(made.front().evaluation.measures.step_time == plain->measures.step_time);
    }
}

TEST_CASE("a short job slows a long one only while it runs") {
    std::vector<Job> jobs{data_job("long", {0, 2}), data_job("short", {1, 3})};
    set_micro_batches(jobs[0].step, 40);
    const Graph graph = graph_of(trunk);
    for (const LinkModel links : both) {
        const auto made = together(jobs, graph, links);
        CHECK(made[0].evaluation.measures.step_time >= made[0].alone);
        CHECK(made[1].evaluation.measures.step_time < made[0].evaluation.measures.step_time);
    }
}

TEST_CASE("background is on the links whether a job is alone or not") {
    std::vector<Job> jobs{data_job("a", {0, 2}), data_job("b", {1, 3})};
    const Graph graph = graph_of(trunk);
    const auto quiet = together(jobs, graph, LinkModel::flows);
    jobs[0].step.background = {
        {.from = DeviceId{0}, .to = DeviceId{2}, .bytes = 1_MiB, .every = 1_us}};
    const auto noisy = together(jobs, graph, LinkModel::flows);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        CHECK(noisy[i].alone > quiet[i].alone);
        REQUIRE(noisy[i].evaluation.background.size() == 1);
        CHECK(noisy[i].evaluation.background[0] > 0);
    }
}

}  // namespace fourfold
