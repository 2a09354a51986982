#include "results/uncertainty.hpp"

// sigma^2 = model^2 + sum over constants of (elasticity * spread)^2. The spreads are judgements:
// how far figures of one device, site and software version lie apart in the published runs behind
// the constants (results/published/accuracy). The model's own share is what is left where all of
// them are known, 2.5 %.

#include <algorithm>
#include <cmath>

#include "results/doubts.hpp"
#include "results/measure.hpp"
#include "sim/simulate.hpp"
#include "workloads/fold.hpp"
#include "workloads/lower.hpp"

namespace fourfold {
namespace {

constexpr double model_spread = 0.025;
constexpr double change = 1.05;
constexpr double quantile_95 = 1.645;  // of the normal distribution
constexpr std::size_t tasks_max = 2'000'000;

struct Variant {
    std::string_view name;
    double spread;
    TrainingStep step;
    double within = 1, across = 1;  // rates of links
    double log_change = std::log(change);
};

std::vector<Variant> variants(const TrainingStep& step) {
    std::vector<Variant> all;
    const auto add = [&](std::string_view name, double spread) -> Variant& {
        return all.emplace_back(Variant{.name = name, .spread = spread, .step = step});
    };
    {
        Device& device = add("matrix units", step.device.fitted ? 0.06 : 0.10).step.device;
        device.gemm.power *= change;
        for (AttentionConstants* flash : {&device.flash, &device.flash_1}) {
            flash->forward *= change;
            flash->backward *= change;
        }
    }
    add("memory bandwidth", 0.10).step.device.memory_efficiency *= change;
    add("links in a node", 0.15).within = change;
    add("network ports", 0.30).across = change;
    const Host& host = step.framework.host;
    if (host.forward_launch + host.backward_launch + host.micro_batch + host.step > Duration(0)) {
        Host& faster = add("host", 0.50).step.framework.host;
        for (Duration* time : {&faster.forward_launch, &faster.backward_launch, &faster.micro_batch,
                               &faster.step, &faster.wait}) {
            *time = scale(*time, 1 / change);
        }
    }
    if (step.framework.tensor_overlap > 0) {
        // A share: its spread and its change are absolute.
        Variant& more = add("tensor overlap", 0.15);
        more.step.framework.tensor_overlap = std::min(1.0, step.framework.tensor_overlap + 0.05);
        more.log_change = 0.05;
    }
    return all;
}

double square(double x) { return x * x; }

// What no constant stands for.
double variance_of_model(const TrainingStep& step, const Graph& graph) {
    double variance = square(model_spread);
    for (const Doubt& doubt : doubts_of(step, graph)) variance += square(doubt.spread);
    return variance;
}

std::optional<Duration> step_time_of(const TrainingStep& step, const Graph& graph) {
    const Result<Lowered> lowered = lower(step, graph, Folding::exact, Detail::chains);
    if (!lowered) return std::nullopt;
    const Result<Timeline> timeline = simulate(graph, lowered->program, {});
    if (!timeline) return std::nullopt;
    return step_time(step, *lowered, *timeline);
}

}  // namespace

double Elasticity::cost_of_ten_percent() const { return std::pow(0.9, value) - 1; }

std::optional<Uncertainty> uncertainty(const TrainingStep& step, const Graph& graph,
                                       Duration step_time, std::size_t tasks) {
    TrainingStep plain = step;
    plain.slow_devices.clear();
    plain.jitter = {};
    if (!fold_of(plain, graph)) {
        if (tasks > tasks_max) return std::nullopt;
        plain = step;
    }
    const std::optional<Duration> base = step_time_of(plain, graph);
    if (!base || *base == Duration::zero()) return std::nullopt;

    Uncertainty found;
    double variance = variance_of_model(plain, graph);
    for (const Variant& variant : variants(plain)) {
        const bool same_graph = variant.within == 1 && variant.across == 1;
        const std::optional<Duration> changed =
            same_graph
                ? step_time_of(variant.step, graph)
                : step_time_of(variant.step, with_rates(graph, variant.within, variant.across));
        if (!changed) return std::nullopt;
        const double value =
            std::log(to_seconds(*changed) / to_seconds(*base)) / variant.log_change;
        found.elasticities.push_back({variant.name, value, variant.spread});
        variance += square(value * variant.spread);
    }
    std::ranges::stable_sort(found.elasticities, [](const Elasticity& a, const Elasticity& b) {
        return std::abs(a.value) > std::abs(b.value);
    });
    found.sigma = std::sqrt(variance);
    found.low = scale(step_time, std::exp(-quantile_95 * found.sigma));
    found.high = scale(step_time, std::exp(quantile_95 * found.sigma));
    return found;
}

}  // namespace fourfold
