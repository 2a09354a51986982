#include "results/evaluate.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>

#include "results/doubts.hpp"
#include "sim/audit.hpp"
#include "topology/uplinks.hpp"

namespace fourfold {
namespace {

struct UnusedLinks {
    std::int64_t count = 0;
    LinkId example{};
};

// In a folded run a device's ports stand for those of the devices that it stands for, and a
// section's uplinks for those of the sections that it stands for.
UnusedLinks unused_links(const Graph& graph, const Evaluation& evaluation) {
    const Lowered& lowered = evaluation.lowered;
    const std::size_t working = evaluation.measures.devices;
    std::optional<Uplinks> uplinks;
    if (lowered.folded) uplinks.emplace(graph);
    const auto weight = [&](LinkId link) -> std::int64_t {
        if (!lowered.folded) return 1;
        if (const auto uplink = uplinks->of(link)) {
            const std::uint32_t block = uplink->section / graph.rails();
            const std::size_t first = std::size_t{block} * graph.blocks()[uplink->level] +
                                      uplink->section % graph.rails();
            return first < working ? lowered.fold->count(uplink->level, uplink->section) : 1;
        }
        const Vertex& from = graph[graph[link].from];
        const DeviceId device = from.is_device ? from.device : graph[graph[link].to].device;
        return device.value < working ? lowered.fold->count(device) : 1;
    };
    UnusedLinks unused;
    for (const LinkId link : evaluation.timeline.carried.keys()) {
        if (evaluation.timeline.carried[link].value > 0) continue;
        if (unused.count == 0) unused.example = link;
        unused.count += weight(link);
    }
    return unused;
}

std::vector<std::string> idle_hardware(const TrainingStep& step, const Graph& graph,
                                       const Evaluation& evaluation) {
    std::vector<std::string> warnings;
    if (!step.devices.empty()) {
        if (evaluation.measures.devices < step.devices.size()) {
            warnings.push_back(
                fmt::format("{} of the job's {} devices have no work: its split "
                            "uses {}",
                            step.devices.size() - evaluation.measures.devices, step.devices.size(),
                            evaluation.measures.devices));
        }
        return warnings;  // what the links carry is not the job's alone to say
    }
    const std::size_t devices = graph.devices().size();
    if (evaluation.measures.devices < devices) {
        warnings.push_back(
            fmt::format("{} of {} devices have no work: the split uses {} (device {} is "
                        "in no group)",
                        devices - evaluation.measures.devices, devices, evaluation.measures.devices,
                        evaluation.measures.devices));
    }
    const UnusedLinks unused = unused_links(graph, evaluation);
    if (unused.count == static_cast<std::int64_t>(graph.links().size())) {
        warnings.push_back("no link carries anything: the step has no communication");
    } else if (unused.count > 0) {
        warnings.push_back(fmt::format("{} of {} links carry nothing, for example {}", unused.count,
                                       graph.links().size(), graph.name(unused.example)));
    }
    return warnings;
}

}  // namespace

std::vector<std::uint64_t> arrivals(const Program& program, const Timeline& timeline) {
    std::vector<std::uint64_t> messages(program.background().size());
    for (const Timeline::Passage& passage : timeline.passages) {
        if (passage.end <= timeline.finish) ++messages[passage.background.value];
    }
    return messages;
}

Resources resources() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
            std::int64_t{usage.ru_maxrss} * 1024};
}

Result<Evaluation> evaluate(const TrainingStep& step, const Graph& graph,
                            const EvaluateOptions& options) {
    const double started = resources().seconds;
    const bool fold = options.fold && options.links == LinkModel::flows;
    // The audit looks at each transfer.
    Result<Lowered> lowered = lower(step, graph, fold ? Folding::exact : Folding::none,
                                    options.audit ? Detail::operations : Detail::chains);
    if (!lowered) return tl::unexpected(lowered.error());
    const SimulateOptions simulated{.links = options.links,
                                    .record_rates = options.audit,
                                    .changes = options.changes,
                                    .quantum = options.quantum};
    Result<Timeline> timeline = simulate(graph, lowered->program, simulated);
    if (!timeline) return tl::unexpected(timeline.error());
    add_chain_traffic(*lowered, *timeline);
    const Resources used = resources();

    if (options.audit) {
        const std::vector<std::string> faults =
            audit(graph, lowered->program, *timeline, simulated);
        if (!faults.empty()) return problem("", "the audit failed: " + faults.front());
    }
    Evaluation evaluation{.lowered = std::move(*lowered),
                          .timeline = std::move(*timeline),
                          .measures = {},
                          .traffic = {},
                          .background = {},
                          .warnings = {},
                          .uncertainty = {},
                          .tasks = 0,
                          .classes = 0,
                          .events = 0,
                          .seconds = used.seconds - started,
                          .peak_memory = used.peak_memory};
    evaluation.tasks = evaluation.lowered.program.tasks();
    evaluation.classes = evaluation.lowered.devices.size();
    evaluation.events = evaluation.timeline.events;
    evaluation.measures = measure(step, evaluation.lowered, evaluation.timeline);
    evaluation.traffic = traffic(graph, evaluation.lowered, evaluation.timeline);
    evaluation.background = arrivals(evaluation.lowered.program, evaluation.timeline);
    evaluation.warnings = idle_hardware(step, graph, evaluation);
    if (options.quantum > Bytes{} && options.links == LinkModel::flows) {
        evaluation.warnings.emplace_back(quantum_of_flows);
    }
    for (Doubt& doubt : doubts_of(step, graph)) {
        evaluation.warnings.push_back(std::move(doubt.text));
    }
    for (const std::string& reason : evaluation.lowered.refusals) {
        evaluation.warnings.push_back(reason + ": auto chooses instead");
    }
    if (evaluation.measures.mfu > 1) {
        evaluation.warnings.push_back("MFU is above 100 %: a measured time or a peak is wrong");
    }
    if (options.uncertainty) {
        evaluation.uncertainty =
            uncertainty(step, graph, evaluation.measures.step_time, evaluation.tasks);
    }
    return evaluation;
}

}  // namespace fourfold
