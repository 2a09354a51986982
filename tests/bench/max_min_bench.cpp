// Of many flows one ends and another starts, or several do at one instant: sharing from the links
// that changed against sharing from nothing, side by side in one run. `solve` chooses; where nearly
// all levels change, it must not lose much.
//
// Hosts in leaves of 32 below one core, 25 GB/s a port, with as much bandwidth above a leaf as
// below it, or a quarter. Flows are messages between two hosts: any, or of one job of 64 hosts.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "sim/max_min.hpp"
#include "tests/bench/measuring.hpp"

namespace fourfold {
namespace {

constexpr std::uint32_t leaf_hosts = 32;

struct Load {
    std::uint32_t hosts;
    std::uint32_t job_hosts;
    std::uint32_t oversubscription;
    std::uint32_t flows = 10'000;
};

using Rates = IdVector<LinkId, BytesPerSecond>;

/// Up and down of each host, then of each leaf.
Rates tree(const Load& load) {
    const std::uint32_t leaves = load.hosts / leaf_hosts;
    Rates rates(2 * std::size_t{load.hosts + leaves}, 25_GBps);
    for (std::uint32_t link = 2 * load.hosts; link < rates.size(); ++link) {
        rates[LinkId{link}].value *= leaf_hosts / load.oversubscription;
    }
    return rates;
}

class Traffic {
  public:
    Traffic(const Load& load, const Rates& rates) : load_(load), rates_(rates) {}

    ActivityKindId add_message(MaxMin& sharing) {
        const std::uint32_t from = pick(load_.hosts);
        const std::uint32_t job = from / load_.job_hosts * load_.job_hosts;
        std::uint32_t to = from;
        while (to == from) to = job + pick(load_.job_hosts);
        std::vector<LinkUse> uses = {{LinkId{2 * from}, bytes}, {LinkId{2 * to + 1}, bytes}};
        if (from / leaf_hosts != to / leaf_hosts) {
            uses.push_back({LinkId{2 * load_.hosts + 2 * (from / leaf_hosts)}, bytes});
            uses.push_back({LinkId{2 * load_.hosts + 2 * (to / leaf_hosts) + 1}, bytes});
        }
        return sharing.add_kind(bytes / rates_[uses.front().link], bytes, uses);
    }
    std::uint32_t pick(std::uint32_t below) {
        return static_cast<std::uint32_t>(random_() % below);
    }

  private:
    static constexpr Bytes bytes = 64_MiB;

    Load load_;
    Rates rates_;
    std::mt19937_64 random_{1};
};

using Solve = std::span<const ActivityId> (MaxMin::*)();

class Replacing {
  public:
    Replacing(const Load& load, Solve solve)
        : load_(load), rates_(tree(load)), sharing_(rates_), traffic_(load, rates_), solve_(solve) {
        for (std::uint32_t i = 0; i < load.flows; ++i) {
            flows_.push_back(sharing_.start(traffic_.add_message(sharing_)));
        }
        (sharing_.*solve_)();
    }

    /// Returns: seconds of CPU time per instant, at which `at_once` flows are replaced.
    double run(std::uint32_t instants, std::uint32_t at_once) {
        std::vector<ActivityKindId> kinds;
        for (std::uint32_t i = 0; i < instants * at_once; ++i) {
            kinds.push_back(traffic_.add_message(sharing_));
        }
        const double begin = cpu_seconds();
        for (std::uint32_t i = 0; i < kinds.size(); ++i) {
            ActivityId& flow = flows_[traffic_.pick(load_.flows)];
            sharing_.end(flow);
            flow = sharing_.start(kinds[i]);
            if ((i + 1) % at_once == 0) changes_ += (sharing_.*solve_)().size();
        }
        return (cpu_seconds() - begin) / instants;
    }

    [[nodiscard]] std::vector<MaxMin::Wide> levels() const {
        std::vector<MaxMin::Wide> levels;
        for (const ActivityId flow : flows_) levels.push_back(sharing_.level(flow));
        return levels;
    }
    [[nodiscard]] std::uint64_t changes() const { return changes_; }

  private:
    Load load_;
    Rates rates_;
    MaxMin sharing_;
    Traffic traffic_;
    Solve solve_;
    std::vector<ActivityId> flows_;
    std::uint64_t changes_ = 0;
};

void replace(benchmark::State& state, const Load& load) {
    constexpr std::uint32_t instants = 20;
    const auto at_once = static_cast<std::uint32_t>(state.range(0));
    std::array ways = {Replacing(load, &MaxMin::solve_in_full),
                       Replacing(load, &MaxMin::solve_locally), Replacing(load, &MaxMin::solve)};
    std::array<double, 3> best{};
    best.fill(std::numeric_limits<double>::infinity());
    for ([[maybe_unused]] auto _ : state) {
        double seconds = 0;
        for (std::size_t way = 0; way < ways.size(); ++way) {
            seconds = ways[way].run(instants, at_once);
            best[way] = std::min(best[way], seconds);
        }
        state.SetIterationTime(seconds * instants);
    }
    for (const Replacing& way : ways) {
        if (way.levels() != ways[0].levels()) state.SkipWithError("the levels differ");
    }
    state.SetItemsProcessed(state.iterations() * instants);
    state.counters["full_us"] = 1e6 * best[0];
    state.counters["local_us"] = 1e6 * best[1];
    state.counters["solve_us"] = 1e6 * best[2];
    state.counters["ratio"] = best[0] / best[2];
    state.counters["changes"] =
        static_cast<double>(ways[0].changes()) / static_cast<double>(state.iterations() * instants);
}

/// All flows start at one instant, and are shared by one solve.
void arrive(benchmark::State& state, const Load& load) {
    const Rates rates = tree(load);
    double best = std::numeric_limits<double>::infinity();
    for ([[maybe_unused]] auto _ : state) {
        MaxMin sharing(rates);
        Traffic traffic(load, rates);
        std::vector<ActivityKindId> kinds;
        for (std::uint32_t i = 0; i < load.flows; ++i) {
            kinds.push_back(traffic.add_message(sharing));
        }
        const double begin = cpu_seconds();
        for (const ActivityKindId kind : kinds) sharing.start(kind);
        const std::size_t changes = sharing.solve().size();
        const double seconds = cpu_seconds() - begin;
        benchmark::DoNotOptimize(changes);
        best = std::min(best, seconds);
        state.SetIterationTime(seconds);
    }
    state.SetItemsProcessed(state.iterations() * load.flows);
    state.counters["ns_per_flow"] = 1e9 * best / load.flows;
}

const bool registered = [] {
    const auto add = [](const std::string& name, const Load& load) {
        benchmark::RegisterBenchmark(("replace/" + name).c_str(), replace, load)
            ->Arg(1)
            ->Arg(5)
            ->Arg(100)
            ->Iterations(20)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
        benchmark::RegisterBenchmark(("arrive/" + name).c_str(), arrive, load)
            ->Iterations(20)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
    };
    add("random", {.hosts = 8'192, .job_hosts = 8'192, .oversubscription = 1});
    add("in_jobs", {.hosts = 8'192, .job_hosts = 64, .oversubscription = 1});
    add("random_oversubscribed", {.hosts = 8'192, .job_hosts = 8'192, .oversubscription = 4});
    add("in_jobs_oversubscribed", {.hosts = 8'192, .job_hosts = 64, .oversubscription = 4});
    add("crowded", {.hosts = 1'024, .job_hosts = 1'024, .oversubscription = 1});
    add("crowded_oversubscribed", {.hosts = 1'024, .job_hosts = 1'024, .oversubscription = 4});
    return true;
}();

}  // namespace
}  // namespace fourfold
