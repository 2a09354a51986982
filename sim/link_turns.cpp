#include "sim/link_turns.hpp"

#include <algorithm>
#include <utility>

#include "topology/check.hpp"

namespace fourfold {

LinkTurns::LinkTurns(Run& run, const LinkChanges& changes, Bytes quantum)
    : run_(run), changes_(changes), quantum_(quantum), ports_(run.graph.links().size()) {
    FOURFOLD_CHECK(quantum > Bytes{});
    for (const LinkChange& change : run.options.changes) {
        FOURFOLD_CHECK(change.bandwidth > 0, "pieces do not leave a failed link");
    }
}

std::uint32_t LinkTurns::enter(std::uint32_t message, std::span<const LinkId> path, Bytes bytes,
                               double stretch) {
    if (message >= courses_.size()) courses_.resize(message + 1);
    Course& course = courses_[message];
    course.path = path;
    course.bytes = bytes;
    course.stretch = stretch;
    course.whole_tail = {};
    course.whole = true;
    course.turns.assign(path.size(), Turn{});
    return add_piece({.message = message, .hop = 0, .bytes = bytes, .tail = {}, .next = none});
}

std::uint32_t LinkTurns::add_piece(const Piece& piece) {
    if (free_pieces_.empty()) {
        pieces_.push_back(piece);
        return static_cast<std::uint32_t>(pieces_.size() - 1);
    }
    const std::uint32_t slot = free_pieces_.back();
    free_pieces_.pop_back();
    pieces_[slot] = piece;
    return slot;
}

void LinkTurns::join(std::uint32_t slot) {
    Piece& piece = pieces_[slot];
    piece.next = none;
    const Place place{piece.message, piece.hop};
    const LinkId link = courses_[place.message].path[place.hop];
    Port& port = ports_[link];
    if (port.free_at < run_.queue.now()) end_turn(port);
    Turn& mine = turn(place);
    (mine.first == none ? mine.first : pieces_[mine.last].next) = slot;
    mine.last = slot;
    if (!mine.in_round) append(port, place);
    touch(link);
}

void LinkTurns::wake(LinkId link) {
    ports_[link].will_wake = false;
    touch(link);
}

std::span<const LinkTurns::Departure> LinkTurns::serve() {
    departures_.clear();
    for (const LinkId link : touched_) {
        Port& port = ports_[link];
        port.touched = false;
        while (port.free_at <= run_.queue.now() && !run_.out_of_range) {
            end_turn(port);
            if (port.first == Place{}) break;
            serve_next(link);
        }
        const bool waits =
            port.first != Place{} || (port.serving != Place{} && turn(port.serving).first != none);
        if (!waits || port.will_wake || run_.out_of_range) continue;
        port.will_wake = true;
        run_.queue.push(port.free_at, {link_free, link.value});
    }
    touched_.clear();
    return departures_;
}

void LinkTurns::touch(LinkId link) {
    if (ports_[link].touched) return;
    ports_[link].touched = true;
    touched_.push_back(link);
}

void LinkTurns::append(Port& port, Place place) {
    turn(place).in_round = true;
    turn(place).next = {};
    (port.first == Place{} ? port.first : turn(port.last).next) = place;
    port.last = place;
}

// Whoever came while it was served is before it.
void LinkTurns::end_turn(Port& port) {
    if (port.serving == Place{}) return;
    const Place place = std::exchange(port.serving, Place{});
    turn(place).in_round = false;
    if (turn(place).first != none) append(port, place);
}

// Takes a quantum off the first piece that waits: only at its source is it larger than one.
std::uint32_t LinkTurns::take_piece(Turn& mine) {
    const std::uint32_t first = mine.first;
    if (pieces_[first].bytes <= quantum_) {
        mine.first = pieces_[first].next;
        return first;
    }
    pieces_[first].bytes = pieces_[first].bytes - quantum_;
    Piece taken = pieces_[first];
    taken.bytes = quantum_;
    return add_piece(taken);
}

void LinkTurns::serve_next(LinkId id) {
    Port& port = ports_[id];
    const Link& link = run_.graph[id];
    const Time now = run_.queue.now();
    const Place place = port.first;
    Course& course = courses_[place.message];
    Turn& mine = turn(place);
    port.first = mine.next;
    const bool begins = mine.passed == Bytes{};
    const std::uint32_t slot = take_piece(mine);
    Piece& piece = pieces_[slot];

    const Duration latency = stretched(link.spec.latency, course.stretch);
    if (begins || port.free_at != now || course.stretch != 1) {
        port.busy_since = now;
        port.busy_with = {};
    }
    port.busy_with += piece.bytes;
    const Duration busy = stretched(port.busy_with / link.rate, course.stretch);
    const Time end =
        run_.after((port.busy_since - now) + changes_.slowed(id, port.busy_since, busy));
    if (run_.out_of_range) return;
    port.free_at = end;
    if (course.stretch != 1) {
        port.busy_since = end;
        port.busy_with = {};
    }
    mine.passed += piece.bytes;
    run_.timeline.carried[id] += piece.bytes;
    run_.timeline.busy[id] += end - now;

    if (begins) {
        const Duration alone = stretched(course.bytes / link.rate, course.stretch);
        const Time whole = run_.after(changes_.slowed(id, now, alone));
        course.whole_tail = std::max(course.whole_tail, whole) + latency;
    } else if (port.served != place) {
        course.whole = false;
    }
    port.served = place;
    const bool is_last = mine.passed == course.bytes;
    if (!is_last) port.serving = place;
    if (is_last && place.hop == 0) departures_.push_back({place.message, end});

    piece.tail = std::max(piece.tail, end) + latency;
    if (++piece.hop < course.path.size()) {
        run_.queue.push(run_.after(latency), {hop, slot});
        return;
    }
    if (is_last) {
        const Time arrival = std::max(now, course.whole ? course.whole_tail : piece.tail);
        run_.queue.push(run_.after(arrival - now), {delivery, place.message});
    }
    free_pieces_.push_back(slot);
}

}  // namespace fourfold
