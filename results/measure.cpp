#include "results/measure.hpp"

#include <algorithm>

#include "topology/check.hpp"

namespace fourfold {
namespace {

constexpr TaskId no_task{~std::uint32_t{0}};
__extension__ using Wide = __int128;

// Assigns the gaps between a device's kernels. For a gap that ends when kernel `v` begins, follow
// back what v waited for: the dependency that ended last, then what that one waited for, and so on,
// until the gap's begin. Every step of the walk accounts for the time down to an earlier instant.
class Partitioner {
  public:
    Partitioner(const Lowered& lowered, const Timeline& timeline)
        : lowered_(lowered),
          program_(lowered.program),
          timeline_(timeline),
          arrival_(program_.collectives().size()) {
        for (const CollectiveId id : arrival_.keys()) {
            for (const TaskId part : program_.parts(id)) {
                arrival_[id] = std::max(arrival_[id], timeline.begin[part]);
            }
        }
    }

    std::vector<TimePartition> run() {
        const std::vector<DeviceId>& devices = lowered_.devices;
        std::vector<TimePartition> all(devices.size());
        std::vector<Time> idle_since(devices.size());
        std::vector<TaskId> last(devices.size(), no_task);
        std::vector<char> has_computed(devices.size(), 0);
        for (const TaskId task : timeline_.begin.keys()) {
            const auto found = std::ranges::lower_bound(devices, program_.device(task));
            const auto device = static_cast<std::size_t>(found - devices.begin());
            if (last[device] == no_task || timeline_.end[task] >= timeline_.end[last[device]]) {
                last[device] = task;
            }
            if (!is_kernel(program_, task, lowered_.labels[task])) continue;
            own_ = &all[device];
            first_ = has_computed[device] == 0;
            explain(task, idle_since[device], timeline_.begin[task]);
            if (const std::uint32_t chain = lowered_.labels[task].chain; chain != Label::none) {
                spend_chain(lowered_.chains[chain]);
            } else {
                spend(TimeClass::compute, timeline_.begin[task], timeline_.end[task]);
            }
            idle_since[device] = timeline_.end[task];
            has_computed[device] = 1;
        }
        for (std::size_t device = 0; device < devices.size(); ++device) {
            own_ = &all[device];
            first_ = false;
            finish_device(last[device], idle_since[device]);
            Duration sum{};
            for (const Duration part : all[device]) sum += part;
            FOURFOLD_CHECK(Time(sum) == timeline_.finish, "device {}'s time does not add up",
                           devices[device].value);
        }
        return all;
    }

  private:
    void spend(TimeClass time_class, Time from, Time to) {
        if (to > from) (*own_)[static_cast<std::size_t>(time_class)] += to - from;
    }

    void spend_chain(const Chain& chain) {
        (*own_)[static_cast<std::size_t>(TimeClass::compute)] += chain.compute;
        (*own_)[static_cast<std::size_t>(TimeClass::transfer)] += chain.transfer;
        (*own_)[static_cast<std::size_t>(TimeClass::host)] += chain.host;
    }

    [[nodiscard]] TaskId binding(TaskId task) const {
        TaskId found = no_task;
        for (const TaskId dependency : program_.dependencies(task)) {
            if (found == no_task || timeline_.end[dependency] >= timeline_.end[found]) {
                found = dependency;
            }
        }
        return found;
    }

    // After the last kernel: the device's last communication, then the others' work.
    void finish_device(TaskId last, Time idle_since) {
        Time end = timeline_.finish;
        if (last != no_task && timeline_.end[last] > idle_since) {
            spend(TimeClass::drain, timeline_.end[last], end);
            walk(last, idle_since, timeline_.end[last]);
        } else {
            spend(TimeClass::drain, idle_since, end);
        }
    }

    void explain(TaskId kernel, Time from, Time to) {
        if (to > from) walk(binding(kernel), from, to);
    }

    void walk(TaskId task, Time from, Time to) {
        while (to > from && task != no_task) {
            switch (program_.kind(task)) {
                case TaskKind::compute: {
                    if (is_kernel(program_, task, lowered_.labels[task])) {
                        task = no_task;
                        break;
                    }
                    const Time begun = std::clamp(timeline_.begin[task], from, to);
                    spend(TimeClass::host, begun, to);
                    to = begun;
                    task = binding(task);
                    break;
                }
                case TaskKind::receive: {
                    const Time sent = std::max(from, timeline_.begin[program_.partner(task)]);
                    spend(TimeClass::transfer, sent, to);
                    spend(neighbour_class(task), from, std::min(sent, to));
                    return;
                }
                case TaskKind::send: {
                    const Time begun = std::clamp(timeline_.begin[task], from, to);
                    spend(TimeClass::transfer, begun, to);
                    to = begun;
                    task = binding(task);
                    break;
                }
                case TaskKind::part: {
                    const Time here = std::clamp(timeline_.begin[task], from, to);
                    const Time all_here = std::clamp(arrival_[program_.collective(task)], here, to);
                    spend(TimeClass::transfer, all_here, to);
                    spend(peer_class(task), here, all_here);
                    to = here;
                    task = binding(task);
                    break;
                }
            }
        }
        // Nothing else is left to wait for: a stage that has not been reached yet.
        spend(first_ ? TimeClass::warmup : TimeClass::drain, from, to);
    }

    [[nodiscard]] TimeClass neighbour_class(TaskId receive) const {
        if (first_) return TimeClass::warmup;
        return lowered_.labels[receive].pass == Pass::forward ? TimeClass::wait_upstream
                                                              : TimeClass::wait_downstream;
    }

    // Waiting at the step's end for another stage is the pipeline's drain, not a slow peer.
    [[nodiscard]] TimeClass peer_class(TaskId part) const {
        const Label& mine = lowered_.labels[part];
        if (mine.pass != Pass::update) return TimeClass::wait_peer;
        for (const TaskId other : program_.parts(program_.collective(part))) {
            if (timeline_.begin[other] == arrival_[program_.collective(part)] &&
                lowered_.labels[other].stage != mine.stage) {
                return TimeClass::drain;
            }
        }
        return TimeClass::wait_peer;
    }

    const Lowered& lowered_;
    const Program& program_;
    const Timeline& timeline_;
    IdVector<CollectiveId, Time> arrival_;  // of the last member
    TimePartition* own_ = nullptr;
    bool first_ = false;
};

// Steps that overlap: while a device waits at one's begin or end, it works on another.
void leave_out(Duration time, TimePartition& device) {
    for (const TimeClass idle :
         {TimeClass::warmup, TimeClass::drain, TimeClass::wait_upstream, TimeClass::wait_downstream,
          TimeClass::wait_peer, TimeClass::host, TimeClass::transfer}) {
        Duration& part = device[static_cast<std::size_t>(idle)];
        const Duration cut = std::min(part, time);
        part -= cut;
        time -= cut;
    }
}

}  // namespace

std::string_view name_of(TimeClass time_class) {
    static constexpr std::string_view names[time_class_count] = {
        "compute",         "comm.transfer", "wait.peer", "wait.upstream",
        "wait.downstream", "warmup",        "drain",     "host"};
    return names[static_cast<std::size_t>(time_class)];
}

std::vector<TimePartition> partition_time(const Lowered& lowered, const Timeline& timeline) {
    return Partitioner(lowered, timeline).run();
}

Duration step_time(const TrainingStep& step, const Lowered& lowered, const Timeline& timeline) {
    if (!step.overlap_optimizer) return timeline.finish.time_since_epoch();
    std::vector<Time> first(lowered.devices.size(), timeline.finish);
    std::vector<Time> last(lowered.devices.size());
    for (const TaskId task : timeline.begin.keys()) {
        const auto found = std::ranges::lower_bound(lowered.devices, lowered.program.device(task));
        const auto device = static_cast<std::size_t>(found - lowered.devices.begin());
        last[device] = std::max(last[device], timeline.end[task]);
        if (lowered.program.kind(task) == TaskKind::receive) continue;
        first[device] = std::min(first[device], timeline.begin[task]);
    }
    Duration longest{};
    for (std::size_t device = 0; device < first.size(); ++device) {
        longest = std::max(longest, last[device] - first[device]);
    }
    return longest;
}

Measures measure(const TrainingStep& step, const Lowered& lowered, const Timeline& timeline) {
    Measures found;
    found.step_time = step_time(step, lowered, timeline);
    found.devices = static_cast<std::uint32_t>(Placement(step.split).devices());
    const double seconds = to_seconds(found.step_time);
    const double devices = found.devices;
    const double tokens =
        static_cast<double>(step.global_batch) * static_cast<double>(step.model.sequence);
    // Fused causal kernels skip the masked half; counting it would put MFU above 1.
    found.convention = is_flash(step.model) ? FlopsConvention::causal : FlopsConvention::full;
    found.model_flops = tokens * model_flops_per_token(step.model, found.convention);
    if (seconds > 0) {
        found.tokens_per_second = tokens / seconds;
        found.flops_per_device = found.model_flops / (seconds * devices);
        found.hardware_flops_per_device = lowered.hardware_flops / (seconds * devices);
        found.mfu = found.flops_per_device / step.device.peak;
        found.hfu = found.hardware_flops_per_device / step.device.peak;
    }

    // Whole picoseconds until the last division: folded or not, the same figures.
    const Duration beyond = timeline.finish.time_since_epoch() - found.step_time;
    std::array<Wide, time_class_count> sum{};
    std::vector<TimePartition> devices_time = partition_time(lowered, timeline);
    for (std::size_t d = 0; d < devices_time.size(); ++d) {
        leave_out(beyond, devices_time[d]);
        for (std::size_t i = 0; i < time_class_count; ++i) {
            sum[i] += Wide{devices_time[d][i].count()} * lowered.counts[d];
        }
    }
    const Wide whole = Wide{found.step_time.count()} * found.devices;
    for (std::size_t i = 0; i < time_class_count; ++i) {
        if (whole > 0) found.time[i] = static_cast<double>(sum[i]) / static_cast<double>(whole);
    }
    const auto fraction = [&](TimeClass time_class) {
        return found.time[static_cast<std::size_t>(time_class)];
    };
    found.idle_fraction = 1 - fraction(TimeClass::compute);
    found.bubble_fraction = fraction(TimeClass::warmup) + fraction(TimeClass::drain) +
                            fraction(TimeClass::wait_upstream) +
                            fraction(TimeClass::wait_downstream);
    return found;
}

}  // namespace fourfold
