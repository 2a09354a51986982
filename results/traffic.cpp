#include "results/traffic.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace fourfold {
namespace {

constexpr TaskId no_task{~std::uint32_t{0}};

// The first kernel that depends on each task, directly or through what comes after it: on the same
// device, or, for messages, on the receiver's.
IdVector<TaskId, TaskId> first_consumers(const Program& program) {
    // Successors have larger ids except across messages: everything else first, then the sends.
    IdVector<TaskId, TaskId> consumer(program.tasks(), no_task);
    for (std::uint32_t id = static_cast<std::uint32_t>(program.tasks()); id-- > 0;) {
        const TaskId task{id};
        if (program.kind(task) == TaskKind::send) continue;
        for (const TaskId next : program.successors(task)) {
            const TaskId found = program.kind(next) == TaskKind::compute ? next : consumer[next];
            if (found != no_task && (consumer[task] == no_task || found < consumer[task])) {
                consumer[task] = found;
            }
        }
    }
    for (const TaskId task : consumer.keys()) {
        if (program.kind(task) != TaskKind::send) continue;
        consumer[task] = consumer[program.successors(task).front()];
    }
    return consumer;
}

// The kernels of every device in time order, with the compute time before each.
class ComputeTime {
  public:
    ComputeTime(const Lowered& lowered, const Timeline& timeline) {
        const Program& program = lowered.program;
        for (const TaskId task : timeline.begin.keys()) {
            const Label& label = lowered.labels[task];
            if (!is_kernel(program, task, label)) continue;
            std::vector<Kernels>& mine = kernels_[program.device(task)];
            Duration before{};
            if (!mine.empty()) before = mine.back().before + mine.back().compute();
            mine.push_back({timeline.begin[task], timeline.end[task], before,
                            label.chain == Label::none ? nullptr : &lowered.chains[label.chain]});
        }
    }

    [[nodiscard]] Duration between(DeviceId device, Time from, Time to) const {
        return to > from ? until(device, to) - until(device, from) : Duration::zero();
    }

  private:
    struct Kernels {  // one, or those of a chain
        Time begin, end;
        Duration before;
        const Chain* chain;

        [[nodiscard]] Duration compute() const { return chain ? chain->compute : end - begin; }
        [[nodiscard]] Duration until(Time at) const {
            const Duration passed = std::min(at, end) - begin;
            if (!chain) return passed;
            const auto next = std::ranges::partition_point(
                chain->kernels, [&](const Chain::Kernel& one) { return one.begin < passed; });
            if (next == chain->kernels.begin()) return Duration::zero();
            const Chain::Kernel& last = *(next - 1);
            return last.before + std::min(last.end, passed) - last.begin;
        }
    };
    [[nodiscard]] Duration until(DeviceId device, Time at) const {
        const auto found = kernels_.find(device);
        if (found == kernels_.end()) return Duration::zero();
        const auto next = std::ranges::partition_point(
            found->second, [&](const Kernels& kernels) { return kernels.begin < at; });
        if (next == found->second.begin()) return Duration::zero();
        return (next - 1)->before + (next - 1)->until(at);
    }
    std::map<DeviceId, std::vector<Kernels>> kernels_;
};

struct Key {
    Axis axis;
    bool point_to_point;
    CollectiveKind kind;
    friend auto operator<=>(const Key&, const Key&) = default;
};

struct Sum {
    std::uint64_t operations = 0, awaited = 0;
    Bytes bytes{}, bytes_min{}, bytes_max{}, wire{};
    Duration window{}, transfer{};
    Time covered{};  // windows that overlap count once
    std::map<TransferId, std::int64_t> transfers;

    void add(TransferId id, const Transfer& about, Bytes sent, bool is_awaited,
             std::int64_t calls = 1) {
        bytes_min = operations == 0 ? about.bytes : std::min(bytes_min, about.bytes);
        bytes_max = std::max(bytes_max, about.bytes);
        operations += static_cast<std::uint64_t>(calls);
        awaited += is_awaited ? static_cast<std::uint64_t>(calls) : 0;
        bytes += about.bytes * calls;
        wire += sent * calls;
        transfers[id] += calls;
    }
};

}  // namespace

void add_chain_traffic(const Lowered& lowered, Timeline& timeline) {
    for (const Label& label : lowered.labels) {
        if (label.chain == Label::none) continue;
        for (const Chain::Collectives& called : lowered.chains[label.chain].collectives) {
            const Transfer& transfer = lowered.program.transfers()[called.transfer];
            for (const LinkUse& use : transfer.uses) {
                timeline.carried[use.link] += use.bytes * use.copies * called.calls;
                timeline.busy[use.link] += transfer.alone * called.calls;
            }
        }
    }
}

std::vector<TrafficRow> traffic(const Graph& graph, const Lowered& lowered,
                                const Timeline& timeline) {
    const Program& program = lowered.program;
    const IdVector<TaskId, TaskId> consumer = first_consumers(program);
    const ComputeTime compute(lowered, timeline);
    const auto needed_at = [&](TaskId kernel) {
        if (kernel == no_task) return timeline.finish;
        const std::uint32_t chain = lowered.labels[kernel].chain;
        const Duration later =
            chain == Label::none ? Duration::zero() : lowered.chains[chain].needed;
        return timeline.begin[kernel] + later;
    };

    IdVector<CollectiveId, Time> arrival(program.collectives().size());
    IdVector<TaskId, std::uint32_t> member(program.tasks(), 0);
    for (const CollectiveId id : arrival.keys()) {
        std::uint32_t place = 0;
        for (const TaskId part : program.parts(id)) {
            arrival[id] = std::max(arrival[id], timeline.begin[part]);
            member[part] = place++;
        }
    }

    std::map<std::tuple<Key, DeviceId>, Sum> sums;
    for (const TaskId task : timeline.begin.keys()) {
        const TaskKind kind = program.kind(task);
        if (kind != TaskKind::send && kind != TaskKind::part) continue;
        const bool is_send = kind == TaskKind::send;
        const TransferId id = is_send ? program.transfer(task)
                                      : program.collectives()[program.collective(task)].transfer;
        const Transfer& about = program.transfers()[id];
        const Label& label = lowered.labels[task];
        const Key key{label.axis, is_send, is_send ? CollectiveKind{} : lowered.kinds[id.value]};
        Sum& sum = sums[{key, program.device(task)}];
        sum.add(id, about, is_send ? about.bytes : about.sent[member[task]], label.awaited);
        const TaskId receive = is_send ? program.successors(task).front() : task;
        const Time moves = is_send
                               ? timeline.begin[task]
                               : std::min(arrival[program.collective(task)], timeline.end[task]);
        sum.transfer += timeline.end[receive] - moves;
        const Time needed = needed_at(consumer[task]);
        if (!label.on_chain) {
            const Time open = std::max(timeline.begin[task], sum.covered);
            sum.window += compute.between(program.device(receive), open, needed);
            sum.covered = std::max(sum.covered, needed);
        }
    }

    for (const TaskId task : timeline.begin.keys()) {
        const std::uint32_t chain = lowered.labels[task].chain;
        if (chain == Label::none) continue;
        for (const Chain::Collectives& called : lowered.chains[chain].collectives) {
            const Transfer& about = program.transfers()[called.transfer];
            const Key key{called.axis, false, lowered.kinds[called.transfer.value]};
            Sum& sum = sums[{key, program.device(task)}];
            sum.add(called.transfer, about, about.sent.front(), called.awaited, called.calls);
            sum.transfer += about.alone * called.calls;
        }
    }

    std::vector<TrafficRow> rows;
    for (auto entry = sums.begin(); entry != sums.end();) {
        const Key key = std::get<Key>(entry->first);
        // Known by the first of those that are like it, whether or not they are all simulated.
        const auto known = [&](const auto& one) {
            const DeviceId own = std::get<DeviceId>(one.first);
            return lowered.fold ? lowered.fold->representative(own) : own;
        };
        const auto more = [&](const auto& a, const auto& b) {
            return std::tuple(a.second.wire, a.second.operations, known(b)) >
                   std::tuple(b.second.wire, b.second.operations, known(a));
        };
        auto busiest = entry;
        for (; entry != sums.end() && std::get<Key>(entry->first) == key; ++entry) {
            if (more(*entry, *busiest)) busiest = entry;
        }
        const DeviceId device = known(*busiest);
        const Sum& sum = busiest->second;
        TrafficRow row{.axis = key.axis,
                       .operation = key.point_to_point ? "send" : std::string(name_of(key.kind)),
                       .operations = sum.operations,
                       .bytes = sum.bytes,
                       .bytes_min = sum.bytes_min,
                       .bytes_max = sum.bytes_max,
                       .wire_bytes = sum.wire,
                       .point_to_point = key.point_to_point,
                       .blocking = 2 * sum.awaited > sum.operations,
                       .window = sum.window,
                       .transfer = sum.transfer,
                       .device = device};
        std::map<LinkId, Bytes> on_own_links;
        const VertexId vertex = graph.devices()[device.value];
        for (const auto& [id, count] : sums.at({key, device}).transfers) {
            for (const LinkUse& use : program.transfers()[id].uses) {
                if (graph[use.link].from == vertex) {
                    on_own_links[use.link] += use.bytes * count;
                }
            }
        }
        Bytes most{-1};
        for (const auto& [link, bytes] : on_own_links) {
            if (bytes <= most) continue;
            most = bytes;
            row.link = link;
            const Bytes carried = timeline.carried[link];
            row.link_share = carried.value == 0 ? 0
                                                : static_cast<double>(bytes.value) /
                                                      static_cast<double>(carried.value);
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

}  // namespace fourfold
