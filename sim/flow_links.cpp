#include "sim/flow_links.hpp"

namespace fourfold {
namespace {

__extension__ using Wide = __int128;

/// None: the activity is a mere delay.
std::span<const LinkUse> uses_of(const Transfer& transfer) {
    if (transfer.alone == Duration::zero() || transfer.stream_bytes.value == 0) return {};
    if (transfer.alone >= duration_limit) return {};  // saturated: begin() will report it
    return transfer.uses;
}

}  // namespace

FlowLinks::UsedLinks::UsedLinks(const Run& run) : numbers_(run.graph.links().size(), unused) {
    for (const Transfer& transfer : run.program.transfers()) {
        for (const LinkUse& use : uses_of(transfer)) {
            if (is_used(use.link)) continue;
            numbers_[use.link] = rates_.push_back(run.graph[use.link].rate);
        }
    }
}

FlowLinks::FlowLinks(Run& run)
    : run_(run),
      used_(run),
      shares_(used_.rates()),
      links_(run.graph.links().size()),
      arrived_(run.program.collectives().size(), 0) {
    for (const Transfer& transfer : run.program.transfers()) {
        const std::span<const LinkUse> all = uses_of(transfer);
        std::vector<LinkUse> uses(all.begin(), all.end());
        for (LinkUse& use : uses) use.link = used_.number(use.link);
        kinds_.push_back(shares_.add_kind(transfer.alone, transfer.stream_bytes, uses));
    }
    for (std::uint32_t i = 0; i < run.options.changes.size(); ++i) {
        const LinkChange& change = run.options.changes[i];
        FOURFOLD_CHECK(change.bandwidth > 0, "flows do not leave a failed link");
        if (used_.is_used(change.link)) run.queue.push(change.at, {link_change, i});
    }
}

void FlowLinks::start(TaskId send) {
    begin(run_.program.transfer(send), send.value, run_.program.stretch(send));
}

void FlowLinks::start(BackgroundId id) {
    const auto passage = static_cast<std::uint32_t>(run_.timeline.passages.size());
    run_.timeline.passages.push_back({.background = id, .begin = run_.queue.now()});
    activities_[begin(run_.program.background()[id].transfer, passage, 1)].is_background = true;
    ++run_.background_events;
}

void FlowLinks::join(TaskId part) {
    const CollectiveId collective = run_.program.collective(part);
    if (++arrived_[collective] < run_.program.parts(collective).size()) return;
    run_.timeline.started[collective] = run_.queue.now();
    begin(run_.program.collectives()[collective].transfer, collective.value,
          run_.program.stretch(collective));
}

ActivityId FlowLinks::begin(TransferId transfer_id, std::uint32_t subject, double stretch) {
    const Transfer& transfer = run_.program.transfers()[transfer_id];
    const ActivityId id = shares_.start(kinds_[transfer_id]);
    if (id.value == activities_.size()) activities_.push_back({});
    const Time now = run_.queue.now();
    activities_[id] = {
        .transfer = transfer_id,
        .subject = subject,
        .stretch = stretch,
        .remaining = Wide{stretched(transfer.alone, stretch).count()} << 48,
        .speed = MaxMin::full_speed,
        .updated = now,
        .looked_at = now,
        .look = {},
    };
    look_at_end(id);
    for (const LinkUse& use : uses_of(transfer)) {
        LinkState& link = links_[use.link];
        if (link.carrying++ == 0) link.since = now;
    }
    note_rate(activities_[id], MaxMin::full_speed);
    return id;
}

void FlowLinks::leave(const Activity& activity) {
    Timeline::Passage& passage = run_.timeline.passages[activity.subject];
    passage.end = run_.after(run_.program.transfers()[activity.transfer].latency);
    --run_.background_events;
    run_.follow(passage.background, passage.begin);
}

void FlowLinks::end(ActivityId id) {
    const Activity& activity = activities_[id];
    for (const LinkUse& use : uses_of(run_.program.transfers()[activity.transfer])) {
        LinkState& link = links_[use.link];
        run_.timeline.carried[use.link] += use.bytes * use.copies;
        if (--link.carrying == 0) run_.timeline.busy[use.link] += run_.queue.now() - link.since;
    }
    note_rate(activity, 0);
    shares_.end(id);
}

void FlowLinks::on_event(Event event) {
    if (event.kind == arrival) {
        run_.done.push_back({event.subject});
        return;
    }
    if (event.kind == link_change) {
        const LinkChange& change = run_.options.changes[event.subject];
        shares_.set_rate(used_.number(change.link),
                         changed_rate(run_.graph[change.link], change.bandwidth));
        return;
    }
    FOURFOLD_DCHECK(event.kind == activity_end);
    const ActivityId id{event.subject};
    Activity& activity = activities_[id];
    activity.work_until(run_.queue.now());
    if (activity.remaining > 0 && !run_.out_of_range) {
        look_at_end(id);
        return;
    }
    const Transfer& transfer = run_.program.transfers()[activity.transfer];
    if (activity.is_background) {
        leave(activity);
    } else if (transfer.is_collective) {
        const std::span<const TaskId> parts = run_.program.parts({activity.subject});
        run_.done.insert(run_.done.end(), parts.begin(), parts.end());
        for (const std::uint32_t count : transfer.incoming) run_.timeline.messages += count;
    } else {
        const TaskId send{activity.subject};
        run_.done.push_back(send);
        run_.queue.push(run_.after(stretched(transfer.latency, activity.stretch)),
                        {arrival, run_.program.successors(send).front().value});
        ++run_.timeline.messages;
    }
    end(id);
}

// Once at the end of an instant: who ends often makes others start at the same time.
void FlowLinks::settle() {
    if (!run_.queue.instant_drained() || !run_.done.empty()) return;
    for (const ActivityId id : shares_.solve()) set_speed(id, shares_.speed(id));
}

void FlowLinks::stop() {
    for (const LinkId link : links_.keys()) {
        if (links_[link].carrying == 0) continue;
        run_.timeline.busy[link] += run_.queue.now() - links_[link].since;
    }
}

// Who slows down is left in the queue where it is: the time at which it would have ended comes, and
// then it is looked at again. Of many changes of speed few cost a division and an event.
void FlowLinks::set_speed(ActivityId id, std::int64_t speed) {
    Activity& activity = activities_[id];
    activity.work_until(run_.queue.now());
    activity.speed = speed;
    const Wide left = Wide{(activity.looked_at - activity.updated).count()} * speed;
    if (activity.remaining < left) {
        run_.queue.cancel(activity.look);
        look_at_end(id);
    }
    note_rate(activity, speed);
}

void FlowLinks::look_at_end(ActivityId id) {
    Activity& activity = activities_[id];
    const Wide left = (activity.remaining + activity.speed - 1) / activity.speed;
    const Duration rest{left > duration_limit.count() ? duration_limit.count()
                                                      : static_cast<std::int64_t>(left)};
    activity.looked_at = run_.after(rest);
    activity.look = run_.queue.push_cancellable(activity.looked_at, {activity_end, id.value});
}

void FlowLinks::note_rate(const Activity& activity, std::int64_t speed) {
    if (!run_.timeline.records_rates) return;
    if (uses_of(run_.program.transfers()[activity.transfer]).empty()) return;
    run_.timeline.rates.push_back({run_.queue.now(), activity.transfer, activity.subject, speed});
}

}  // namespace fourfold
