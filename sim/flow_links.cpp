#include "sim/flow_links.hpp"

#include <algorithm>

#include "topology/check.hpp"

namespace fourfold {
namespace {

__extension__ using Wide = __int128;

constexpr Wide level_scale = Wide{1'000'000'000'000} << 16;  // S: bytes per ps to 2^-16 B/s

constexpr Wide no_level = Wide{1} << 126;  // above all; numeric_limits has no 128 bits

// Levels of links beyond 2^47 B/s do not fit 64 bits.
Wide ceil_ratio(Wide numerator, Wide denominator) {
    return (numerator + denominator - 1) / denominator;
}

}  // namespace

FlowLinks::FlowLinks(Run& run)
    : run_(run),
      kinds_(run.program.transfers().size()),
      links_(run.graph.links().size()),
      arrived_(run.program.collectives().size(), 0) {
    for (const LinkId link : links_.keys()) {
        links_[link].capacity = Wide{run.graph[link].rate.value} << 16;
    }
    for (const TransferId id : kinds_.keys()) {
        const Transfer& transfer = run.program.transfers()[id];
        if (transfer.alone == Duration::zero() || transfer.stream_bytes.value == 0) continue;
        if (transfer.alone >= duration_limit) continue;  // saturated: begin() will report it
        const Wide time = transfer.alone.count();
        Kind& kind = kinds_[id];
        kind.full_level = ceil_ratio(transfer.stream_bytes.value * level_scale, time);
        for (const LinkUse& use : transfer.uses) {
            const Wide demand = ceil_ratio(use.bytes.value * level_scale, time);
            FOURFOLD_CHECK(demand <= links_[use.link].capacity,
                           "a transfer alone would be faster than its link {}", use.link.value);
            const Wide weight =
                ceil_ratio(Wide{use.bytes.value} << 32, transfer.stream_bytes.value);
            kind.uses.push_back({use.link, demand, weight, use.bytes});
        }
    }
}

void FlowLinks::start(TaskId send) { begin(run_.program.transfer(send), send.value); }

void FlowLinks::join(TaskId part) {
    const CollectiveId collective = run_.program.collective(part);
    if (++arrived_[collective] < run_.program.parts(collective).size()) return;
    run_.timeline.started[collective] = run_.queue.now();
    begin(run_.program.collectives()[collective].transfer, collective.value);
}

void FlowLinks::begin(TransferId transfer, std::uint32_t subject) {
    std::uint32_t slot = 0;
    if (free_.empty()) {
        slot = static_cast<std::uint32_t>(activities_.size());
        activities_.emplace_back();
    } else {
        slot = free_.back();
        free_.pop_back();
    }
    const Duration alone = run_.program.transfers()[transfer].alone;
    const EventQueue::Handle end = run_.queue.push(run_.after(alone), {activity_end, slot});
    activities_[slot] = {transfer, subject, Wide{alone.count()} << 48, full_speed, run_.queue.now(),
                         end,      0};

    const Kind& kind = kinds_[transfer];
    if (kind.uses.empty()) return;
    activities_[slot].place = static_cast<std::uint32_t>(active_.size());
    active_.push_back(slot);
    for (const Use& use : kind.uses) {
        LinkState& link = links_[use.link];
        const bool was_overloaded = link.demand > link.capacity;
        link.demand += use.demand;
        const bool is_overloaded = link.demand > link.capacity;
        overloaded_ += is_overloaded && !was_overloaded ? 1 : 0;
        changed_ = changed_ || is_overloaded;
        if (link.carrying++ == 0) link.since = run_.queue.now();
    }
    note_rate(activities_[slot], full_speed);
}

void FlowLinks::end(std::uint32_t slot) {
    const Activity& activity = activities_[slot];
    const Kind& kind = kinds_[activity.transfer];
    const Time now = run_.queue.now();
    if (!kind.uses.empty()) {
        for (const Use& use : kind.uses) {
            LinkState& link = links_[use.link];
            const bool was_overloaded = link.demand > link.capacity;
            link.demand -= use.demand;
            overloaded_ -= was_overloaded && link.demand <= link.capacity ? 1 : 0;
            changed_ = changed_ || was_overloaded;
            run_.timeline.carried[use.link] += use.bytes;
            if (--link.carrying == 0) run_.timeline.busy[use.link] += now - link.since;
        }
        note_rate(activity, 0);
        activities_[active_.back()].place = activity.place;
        active_[activity.place] = active_.back();
        active_.pop_back();
    }
    free_.push_back(slot);
}

void FlowLinks::on_event(Event event) {
    if (event.kind == arrival) {
        run_.done.push_back({event.subject});
        return;
    }
    FOURFOLD_DCHECK(event.kind == activity_end);
    const Activity& activity = activities_[event.subject];
    const Transfer& transfer = run_.program.transfers()[activity.transfer];
    if (transfer.is_collective) {
        const std::span<const TaskId> parts = run_.program.parts({activity.subject});
        run_.done.insert(run_.done.end(), parts.begin(), parts.end());
        for (const std::uint32_t count : transfer.incoming) run_.timeline.messages += count;
    } else {
        const TaskId send{activity.subject};
        run_.done.push_back(send);
        run_.queue.push(run_.after(transfer.latency),
                        {arrival, run_.program.successors(send).front().value});
        ++run_.timeline.messages;
    }
    end(event.subject);
}

void FlowLinks::settle() {
    if (!changed_) return;
    changed_ = false;
    solve();
}

void FlowLinks::solve() {
    unfrozen_.clear();
    constraining_.clear();
    for (const std::uint32_t slot : active_) {
        bool constrained = false;
        for (const Use& use : kinds_[activities_[slot].transfer].uses) {
            LinkState& link = links_[use.link];
            if (link.demand <= link.capacity) continue;
            constrained = true;
            if (link.weight == 0) {
                link.frozen = 0;
                constraining_.push_back(use.link);
            }
            link.weight += use.weight;
        }
        if (constrained) {
            unfrozen_.push_back(slot);
        } else {
            set_speed(slot, full_speed);
        }
    }

    const auto level_of = [](const LinkState& link) {
        return ((link.capacity << 32) - link.frozen) / link.weight;
    };
    while (!unfrozen_.empty()) {
        Wide level = no_level;
        for (const LinkId id : constraining_) {
            if (links_[id].weight > 0) level = std::min(level, level_of(links_[id]));
        }
        for (const std::uint32_t slot : unfrozen_) {
            level = std::min(level, kinds_[activities_[slot].transfer].full_level);
        }
        // Decide first, freeze afterwards: links must not change under those that come later.
        const auto is_frozen = [&](std::uint32_t slot) {
            const Kind& kind = kinds_[activities_[slot].transfer];
            return kind.full_level == level ||
                   std::any_of(kind.uses.begin(), kind.uses.end(), [&](const Use& use) {
                       const LinkState& link = links_[use.link];
                       return link.demand > link.capacity && level_of(link) == level;
                   });
        };
        const auto frozen = std::stable_partition(unfrozen_.begin(), unfrozen_.end(),
                                                  [&](auto slot) { return !is_frozen(slot); });
        for (auto slot = frozen; slot != unfrozen_.end(); ++slot) {
            const Kind& kind = kinds_[activities_[*slot].transfer];
            for (const Use& use : kind.uses) {
                LinkState& link = links_[use.link];
                if (link.demand <= link.capacity) continue;
                link.frozen += level * use.weight;
                link.weight -= use.weight;
            }
            const Wide speed =
                kind.full_level <= level ? Wide{full_speed} : (level << 48) / kind.full_level;
            set_speed(*slot, static_cast<std::int64_t>(std::max(speed, Wide{1})));
        }
        unfrozen_.erase(frozen, unfrozen_.end());
    }
}

void FlowLinks::set_speed(std::uint32_t slot, std::int64_t speed) {
    Activity& activity = activities_[slot];
    if (activity.speed == speed) return;
    const Time now = run_.queue.now();
    activity.remaining -= Wide{(now - activity.updated).count()} * activity.speed;
    activity.updated = now;
    activity.speed = speed;
    const Wide left = (activity.remaining + speed - 1) / speed;
    const Duration rest{left > duration_limit.count() ? duration_limit.count()
                                                      : static_cast<std::int64_t>(left)};
    run_.queue.cancel(activity.end);
    activity.end = run_.queue.push(run_.after(rest), {activity_end, slot});
    note_rate(activity, speed);
}

void FlowLinks::note_rate(const Activity& activity, std::int64_t speed) {
    if (!run_.timeline.records_rates) return;
    run_.timeline.rates.push_back({run_.queue.now(), activity.transfer, activity.subject, speed});
}

}  // namespace fourfold
