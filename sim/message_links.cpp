#include "sim/message_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "topology/check.hpp"

namespace fourfold {

MessageLinks::MessageLinks(Run& run)
    : run_(run),
      changes_(run.graph, run.options.changes),
      ports_(run.graph.links().size()),
      call_of_(run.program.collectives().size(), ~std::uint32_t{0}),
      member_of_(run.program.tasks(), 0),
      paths_(run.graph) {
    if (run.options.quantum > Bytes{}) {
        FOURFOLD_CHECK(run.program.background().size() == 0, "turns know no background");
        turns_.emplace(run, changes_, run.options.quantum);
    }
    for (const Transfer& transfer : run.program.transfers()) {
        if (!transfer.is_collective) continue;
        FOURFOLD_CHECK(
            transfer.plan.members == run.program.teams()[transfer.team].members.size(),
            "messages are simulated for all members, not for some that stand for others");
    }
    for (const CollectiveId id : run.program.collectives().keys()) {
        std::uint32_t member = 0;
        for (const TaskId part : run.program.parts(id)) member_of_[part] = member++;
    }
    const bool any_recur = run.program.collectives().size() > run.program.transfers().size();
    if (any_recur && !run.options.each_message && !turns_ && !changes_.any()) {
        const std::size_t links = run.graph.links().size();
        quiet_.emplace(Quiet{.teams = {run.graph, run.program, member_of_},
                             .courses = {run.graph, run.program},
                             .open = IdVector<LinkId, std::uint32_t>(links),
                             .held_until = IdVector<LinkId, Time>(links)});
        if (!quiet_->teams.any()) quiet_.reset();
    }
}

void MessageLinks::on_event(Event event) {
    switch (event.kind) {
        case hop:
            if (!turns_) {
                run_.background_events -= messages_[event.subject].is_background() ? 1 : 0;
                send_following(event.subject);
            }
            heads_.push_back(event.subject);
            break;
        case link_free:
            turns_->wake({event.subject});
            break;
        case delivery:
            run_.background_events -= messages_[event.subject].is_background() ? 1 : 0;
            send_following(event.subject);
            deliver(event.subject);
            break;
        case background_ready:
            --run_.background_events;
            inject_background(event.subject);
            break;
        case background_left: {
            --run_.background_events;
            const Timeline::Passage& passage = run_.timeline.passages[event.subject];
            run_.follow(passage.background, passage.begin);
            break;
        }
        case send_start: {
            const TaskId send{event.subject};
            const Transfer& sent = run_.program.transfers()[run_.program.transfer(send)];
            inject(free_slot(), {.order = {run_.program.device(send), send},
                                 .next = sent.path.data(),
                                 .end = sent.path.data() + sent.path.size(),
                                 .bytes = sent.bytes,
                                 .stretch = run_.program.stretch(send),
                                 .tail = {},
                                 .at_source = true,
                                 .inbox = 0,
                                 .collective = {},
                                 .from = Step::nobody,
                                 .to = Step::nobody});
            break;
        }
        case send_end:
            run_.done.push_back({event.subject});
            break;
        case part_start:
            begin_steps({event.subject});
            break;
        case part_end:
            close_member({event.subject});
            break;
        default:
            FOURFOLD_CHECK(false, "event {} is not of messages", event.kind);
    }
}

void MessageLinks::settle() {
    if (turns_) return serve_in_turns();
    const auto earlier = [this](std::uint32_t a, std::uint32_t b) {
        return messages_[a].order < messages_[b].order;
    };
    // Failures and background tell who was first.
    const bool any_order = !changes_.any() && run_.program.background().empty();
    if (!any_order || heads_meet()) std::sort(heads_.begin(), heads_.end(), earlier);
    for (const std::uint32_t slot : heads_) serve(slot);
    heads_.clear();
}

// Whether two heads are at one link.
bool MessageLinks::heads_meet() {
    ++settled_;
    return std::ranges::any_of(heads_, [this](std::uint32_t slot) {
        return std::exchange(ports_[*messages_[slot].next].settled, settled_) == settled_;
    });
}

void MessageLinks::serve_in_turns() {
    std::ranges::sort(heads_, {}, [this](std::uint32_t piece) {
        return std::pair(messages_[turns_->message_of(piece)].order, piece);
    });
    for (const std::uint32_t piece : heads_) turns_->join(piece);
    heads_.clear();
    for (const auto& [message, at] : turns_->serve()) leave_source(messages_[message], at);
}

// ---- Messages on links

void MessageLinks::start(TaskId send) {
    const Transfer& sent = run_.program.transfers()[run_.program.transfer(send)];
    run_.queue.push(run_.after(stretched(sent.overhead, run_.program.stretch(send))),
                    {send_start, send.value});
}

// As a send without overhead: it is at its first link when sends of the same instant are.
void MessageLinks::start(BackgroundId id) {
    const auto passage = static_cast<std::uint32_t>(run_.timeline.passages.size());
    run_.timeline.passages.push_back({.background = id, .begin = run_.queue.now()});
    run_.queue.push(run_.queue.now(), {background_ready, passage});
    ++run_.background_events;
}

void MessageLinks::inject_background(std::uint32_t passage) {
    constexpr TaskId no_task{~std::uint32_t{0}};
    const BackgroundId id = run_.timeline.passages[passage].background;
    const Transfer& sent = run_.program.transfers()[run_.program.background()[id].transfer];
    const Vertex& source = run_.graph[run_.graph[sent.path.front()].from];
    inject(free_slot(), {.order = {source.device, no_task, id.value},
                         .next = sent.path.data(),
                         .end = sent.path.data() + sent.path.size(),
                         .bytes = sent.bytes,
                         .stretch = 1,
                         .tail = {},
                         .at_source = true,
                         .inbox = 0,
                         .collective = {},
                         .from = Step::nobody,
                         .to = passage});
}

std::uint32_t MessageLinks::free_slot() {
    if (free_messages_.empty()) {
        free_messages_.push_back(static_cast<std::uint32_t>(messages_.size()));
        messages_.emplace_back();
    }
    const std::uint32_t slot = free_messages_.back();
    free_messages_.pop_back();
    return slot;
}

void MessageLinks::inject(std::uint32_t slot, const Message& message) {
    messages_[slot] = message;
    heads_.push_back(
        turns_ ? turns_->enter(slot, {message.next, message.end}, message.bytes, message.stretch)
               : slot);
}

void MessageLinks::serve(std::uint32_t slot) {
    Message& message = messages_[slot];
    const Time now = run_.queue.now();
    if (changes_.any() && !take_link(slot)) return;
    const LinkId id = *message.next++;
    const Link& link = run_.graph[id];
    const Duration latency = stretched(link.spec.latency, message.stretch);
    const Time head = std::max(now, ports_[id].free_at);
    Duration occupied = stretched(time_on(id, message.bytes), message.stretch);
    if (changes_.any()) occupied = changes_.slowed(id, head, occupied);
    Time free = run_.after((head - now) + occupied);
    message.tail = std::max(message.tail, free);
    for (std::uint32_t i = 0; i < message.following; ++i)
        free = run_.after((free - now) + occupied);
    if (run_.out_of_range) return;  // and nothing may be added up any more
    ports_[id].free_at = free;
    if (!message.is_background()) count(id, message.bytes, 1 + message.following);

    if (message.at_source) {
        message.at_source = false;
        leave_source(message, free);
    }
    message.tail += latency;
    if (message.next == message.end) {
        push(run_.after(message.tail - now), delivery, slot);
    } else {
        push(run_.after((head - now) + latency), hop, slot);
    }
}

// Whether its next link serves the message. A link whose turn would come only after it has failed
// is left when it fails.
bool MessageLinks::take_link(std::uint32_t slot) {
    Message& message = messages_[slot];
    const Time now = run_.queue.now();
    while (true) {
        const LinkId id = *message.next;
        const std::optional<Time> fails = changes_.failure(id);
        if (!fails || std::max(now, ports_[id].free_at) < *fails) return true;
        if (now < *fails) {
            push(*fails, hop, slot);
            return false;
        }
        const VertexId here = run_.graph[id].from, there = run_.graph[*(message.end - 1)].to;
        const auto failed = static_cast<std::size_t>(std::ranges::count_if(
            run_.options.changes,
            [now](const LinkChange& each) { return each.bandwidth == 0 && each.at <= now; }));
        const auto [entry, is_new] = detours_.try_emplace(std::tuple(failed, here, there));
        if (is_new) entry->second = changes_.path(here, there, now);
        if (entry->second.empty()) {
            run_.cut_off = fmt::format(
                "the link {} has failed, and no route is left from '{}' to '{}' for a message of "
                "device {}",
                run_.graph.name(id), run_.graph[here].name, run_.graph[there].name,
                message.order.source.value);
            return false;
        }
        message.next = entry->second.data();
        message.end = message.next + entry->second.size();
    }
}

void MessageLinks::leave_source(const Message& message, Time at) {
    if (message.is_background()) {
        run_.queue.push(at, {background_left, message.to});
        ++run_.background_events;
        return;
    }
    if (message.from == Step::nobody) {
        run_.queue.push(at, {send_end, message.order.task.value});
        return;
    }
    Member& sender = call(message.collective).members[message.from];
    sender.sending_until = std::max(sender.sending_until, at);
    sender.unserved -= 1 + message.following;
    maybe_end(message.collective, message.from);
}

void MessageLinks::push(Time at, EventKind kind, std::uint32_t slot) {
    run_.queue.push(at, {kind, slot});
    run_.background_events += messages_[slot].is_background() ? 1 : 0;
}

Duration MessageLinks::time_on(LinkId link, Bytes bytes) {
    Port& port = ports_[link];
    if (port.bytes != bytes) {
        port.bytes = bytes;
        port.time = bytes / run_.graph[link].rate;
    }
    return port.time;
}

void MessageLinks::count(LinkId link, Bytes bytes, std::uint32_t messages) {
    run_.timeline.carried[link] += bytes * messages;
    run_.timeline.busy[link] += time_on(link, bytes) * messages;
}

void MessageLinks::arrive(std::uint32_t index) {
    Timeline::Passage& passage = run_.timeline.passages[index];
    passage.end = run_.queue.now();
    const Background& background = run_.program.background()[passage.background];
    const Transfer& sent = run_.program.transfers()[background.transfer];
    for (const LinkId link : sent.path) count(link, sent.bytes);
}

void MessageLinks::deliver(std::uint32_t slot) {
    const Message message = messages_[slot];
    free_messages_.push_back(slot);
    if (message.is_background()) return arrive(message.to);
    ++run_.timeline.messages;
    if (message.from == Step::nobody) {
        run_.done.push_back(run_.program.successors(message.order.task).front());
        return;
    }
    const CollectiveId id = message.collective;
    const std::uint32_t channel = message.order.channel;
    Member& receiver = call(id).members[message.to];
    --receiver.incoming;
    if (transfer(id).rule->pace == Pace::rendezvous) {
        half_done(id, message.from, channel);
        half_done(id, message.to, channel);
    } else {
        ++lane(id, message.to, channel).inbox[message.inbox];
        if (receiver.here) run_eager(id, message.to, channel);
    }
    maybe_end(id, message.to);
}

// ---- Collectives, member by member

void MessageLinks::join(TaskId part) {
    const CollectiveId id = run_.program.collective(part);
    if (call_of_[id] == ~std::uint32_t{0}) open_call(id);
    run_.queue.push(run_.after(stretched(transfer(id).start, run_.program.stretch(id))),
                    {part_start, part.value});
}

void MessageLinks::open_call(CollectiveId id) {
    run_.timeline.started[id] = run_.queue.now();
    if (free_calls_.empty()) {
        free_calls_.push_back(static_cast<std::uint32_t>(calls_.size()));
        calls_.emplace_back();
    }
    call_of_[id] = free_calls_.back();
    free_calls_.pop_back();

    const Transfer& about = transfer(id);
    const std::span<const TaskId> parts = run_.program.parts(id);
    Call& opened = call(id);
    opened.open = static_cast<std::uint32_t>(parts.size());
    opened.held = can_hold(id);
    if (quiet_) {
        for (const LinkId port : quiet_->teams.ports(about.team)) ++quiet_->open[port];
    }
    if (opened.held) {
        opened.begun = 0;
        opened.begins.assign(parts.size(), Duration::zero());
        return;
    }
    opened.members.assign(parts.size(), Member{});
    opened.lanes.assign(parts.size() * about.plan.channels, Lane{});
    for (std::uint32_t member = 0; member < parts.size(); ++member) {
        opened.members[member].part = parts[member];
        opened.members[member].incoming = about.incoming[member];
        for (std::uint32_t channel = 0; channel < about.plan.channels; ++channel) {
            const std::uint32_t steps = about.rule->count(about.plan, channel, member);
            opened.lanes[member * about.plan.channels + channel].steps = steps;
            opened.members[member].open_lanes += steps > 0 ? 1 : 0;
        }
    }
}

void MessageLinks::begin_steps(TaskId part) {
    const CollectiveId id = run_.program.collective(part);
    const std::uint32_t member = member_of_[part];
    if (call(id).held && call(id).begun > 0) return hold(id, member);
    if (quiet_) {
        for (const LinkId port : quiet_->teams.ports(transfer(id).team, member)) {
            if (quiet_->held_until[port] > run_.queue.now()) run_.disturbed = true;
        }
    }
    if (call(id).held) return hold(id, member);
    call(id).members[member].here = true;
    for (std::uint32_t channel = 0; channel < transfer(id).plan.channels; ++channel) {
        if (transfer(id).rule->pace == Pace::rendezvous) {
            enter_rounds(id, member, channel);
        } else {
            run_eager(id, member, channel);
        }
    }
    maybe_end(id, member);
}

bool MessageLinks::can_hold(CollectiveId id) const {
    const TransferId transfer = run_.program.collectives()[id].transfer;
    const Transfer& about = run_.program.transfers()[transfer];
    return quiet_ && about.meets && quiet_->teams.is_quiet(about.team) &&
           run_.program.stretch(id) == 1 && quiet_->courses.recur(transfer) &&
           std::ranges::all_of(quiet_->teams.ports(about.team),
                               [this](LinkId port) { return quiet_->open[port] == 0; });
}

void MessageLinks::hold(CollectiveId id, std::uint32_t member) {
    Call& held = call(id);
    if (held.begun++ == 0) {
        held.first = run_.queue.now();
        for (const LinkId port : quiet_->teams.ports(transfer(id).team)) {
            if (quiet_->open[port] > 1) run_.disturbed = true;
            quiet_->held_until[port] = Time::max();
        }
    }
    held.begins[member] = run_.queue.now() - held.first;
    if (held.begun == held.begins.size()) release(id);
}

void MessageLinks::release(CollectiveId id) {
    const Call& held = call(id);
    const Course& course =
        quiet_->courses.course(run_.program.collectives()[id].transfer, held.begins);
    run_.out_of_range = run_.out_of_range || !course.in_range;
    if (run_.out_of_range) return;
    const Duration past = run_.queue.now() - held.first;
    Time last{};
    for (std::uint32_t member = 0; member < held.begins.size(); ++member) {
        FOURFOLD_CHECK(course.ends[member] >= past, "member {} is done too early", member);
        const Time end = run_.after(course.ends[member] - past);
        last = std::max(last, end);
        run_.queue.push(end, {part_end, run_.program.parts(id)[member].value});
    }
    for (const Course::Load& load : course.loads) {
        run_.timeline.carried[load.link] += load.bytes;
        run_.timeline.busy[load.link] += load.busy;
    }
    run_.timeline.messages += course.messages;
    for (const LinkId port : quiet_->teams.ports(transfer(id).team)) {
        quiet_->held_until[port] = last;
    }
}

void MessageLinks::run_eager(CollectiveId id, std::uint32_t member, std::uint32_t channel) {
    const Transfer& about = transfer(id);
    Lane& mine = lane(id, member, channel);
    if (mine.next == mine.steps) return;
    while (mine.next < mine.steps) {
        const Step step = about.rule->step(about.plan, channel, member, mine.next);
        if (mine.inbox[step.wait_inbox] < step.arrived) return;
        if (step.to != Step::nobody) send_step(id, channel, member, step, mine.next);
        ++mine.next;
    }
    --call(id).members[member].open_lanes;
}

void MessageLinks::enter_rounds(CollectiveId id, std::uint32_t member, std::uint32_t channel) {
    const Transfer& about = transfer(id);
    Lane& mine = lane(id, member, channel);
    if (mine.next == mine.steps) return;
    for (; mine.next < mine.steps; ++mine.next) {
        const std::uint32_t round = mine.next;
        const Step step = about.rule->step(about.plan, channel, member, round);
        mine.awaited = (step.to != Step::nobody ? 1U : 0U) + (step.from != Step::nobody ? 1U : 0U);
        const auto waits_here = [&](std::uint32_t partner) {
            const Lane& other = lane(id, partner, channel);
            return other.next == round && other.awaited > 0;
        };
        if (step.to != Step::nobody && waits_here(step.to)) {
            send_step(id, channel, member, step, round);
        }
        if (step.from != Step::nobody && waits_here(step.from)) {
            const Step theirs = about.rule->step(about.plan, channel, step.from, round);
            send_step(id, channel, step.from, theirs, round);
        }
        if (mine.awaited > 0) return;
    }
    --call(id).members[member].open_lanes;
}

void MessageLinks::half_done(CollectiveId id, std::uint32_t member, std::uint32_t channel) {
    Lane& mine = lane(id, member, channel);
    if (--mine.awaited > 0) return;
    ++mine.next;
    if (mine.next == mine.steps) {
        --call(id).members[member].open_lanes;
    } else {
        enter_rounds(id, member, channel);
    }
    maybe_end(id, member);
}

void MessageLinks::send_step(CollectiveId id, std::uint32_t channel, std::uint32_t member,
                             const Step& step, std::uint32_t k) {
    const Team& team = run_.program.teams()[transfer(id).team];
    std::span<const LinkId> path = paths_.between(team, member, step.to);
    Member& sender = call(id).members[member];
    ++sender.unserved;
    const Order order{team.members[member], sender.part, channel, k};
    if (couple(order, step, path.front())) return;
    const std::uint32_t slot = free_slot();
    if (!team.keeps_paths()) path = keep(slot, path);
    inject(slot, {.order = order,
                  .next = path.data(),
                  .end = path.data() + path.size(),
                  .bytes = step.bytes,
                  .stretch = run_.program.stretch(id),
                  .tail = {},
                  .at_source = true,
                  .inbox = step.inbox,
                  .collective = id,
                  .from = member,
                  .to = step.to});
}

std::span<const LinkId> MessageLinks::keep(std::uint32_t slot, std::span<const LinkId> path) {
    if (slot >= kept_paths_.size()) kept_paths_.resize(messages_.size());
    kept_paths_[slot].assign(path.begin(), path.end());
    return kept_paths_[slot];
}

// Whether the step goes with the train of the message that was injected before it. Links that
// change, or serve in turns, have no trains.
bool MessageLinks::couple(const Order& order, const Step& step, LinkId first) {
    if (heads_.empty() || turns_ || changes_.any()) return false;
    Message& last = messages_[heads_.back()];
    const Order after{last.order.source, last.order.task, last.order.channel,
                      last.order.step + last.following + 1};
    if (!last.at_source || order != after || step.bytes != last.bytes || first != *last.next) {
        return false;
    }
    ++last.following;
    return true;
}

// The message's head is beyond its first link: the next one of its train becomes a message. Its
// head left that link when this one's tail did.
void MessageLinks::send_following(std::uint32_t slot) {
    if (messages_[slot].following == 0) return;
    Message message = messages_[slot];
    messages_[slot].following = 0;
    --message.following;
    ++message.order.step;
    const Transfer& about = transfer(message.collective);
    const Step step =
        about.rule->step(about.plan, message.order.channel, message.from, message.order.step);
    message.inbox = step.inbox;
    message.to = step.to;

    const Team& team = run_.program.teams()[about.team];
    std::span<const LinkId> path = paths_.between(team, message.from, message.to);
    const std::uint32_t next = free_slot();
    if (!team.keeps_paths()) path = keep(next, path);
    message.next = path.data() + 1;
    message.end = path.data() + path.size();
    const Time head = message.tail, now = run_.queue.now();
    message.tail += stretched(time_on(path.front(), message.bytes), message.stretch);
    messages_[next] = message;
    if (message.next == message.end) {
        push(run_.after(message.tail - now), delivery, next);
    } else {
        push(head, hop, next);
    }
}

void MessageLinks::maybe_end(CollectiveId id, std::uint32_t member) {
    Member& mine = call(id).members[member];
    if (!mine.here || mine.open_lanes > 0 || mine.incoming > 0 || mine.unserved > 0) return;
    mine.here = false;  // it ends once
    run_.queue.push(std::max(run_.queue.now(), mine.sending_until), {part_end, mine.part.value});
}

void MessageLinks::close_member(TaskId part) {
    const CollectiveId id = run_.program.collective(part);
    run_.done.push_back(part);
    if (--call(id).open > 0) return;
    free_calls_.push_back(call_of_[id]);
    if (!quiet_) return;
    for (const LinkId port : quiet_->teams.ports(transfer(id).team)) --quiet_->open[port];
}

}  // namespace fourfold
