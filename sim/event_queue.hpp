#pragma once

// The pending events of a run, a monotone radix queue (Ahuja, Mehlhorn, Orlin, Tarjan 1990) of base
// 64 on the picosecond.
//
// Assumption about the data: time only moves forward, most events are near, many are equal. With
// `now` as the reference, an event of time t waits in the bucket (level, digit), where level is the
// highest base-64 digit in which t differs from now, and digit is t's digit there:
//
//     level 2  | ....#....#............ |   each bucket: a list in order of insertion
//     level 1  | ..#................... |
//     level 0  | ...#..#............... |   t = now with another last digit: exactly sorted
//
// To advance, the lowest bucket of the lowest occupied level is emptied into lower levels, in its
// order, with its earliest time as the new `now`. So every event moves down at most once per level,
// whatever the number of pending events, and equal times come out in the order they were pushed.
//
// Looking for the minimum must not advance: events pushed later, between the old `now` and the
// minimum, would be misplaced. So the loop asks `instant_drained` and `min_time`, which change
// nothing, and calls `advance` only when the instant is over.

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "topology/check.hpp"
#include "topology/units.hpp"

namespace fourfold {

/// What an event means is its owner's business.
struct Event {
    std::uint32_t kind;
    std::uint32_t subject;
};

class EventQueue {
  public:
    using Handle = std::uint32_t;

    EventQueue() { heads_.fill(nil); }

    [[nodiscard]] Time now() const { return Time(Duration(now_)); }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] std::size_t size() const { return size_; }

    /// Requires: at >= now(). The handle is good until the event is popped or cancelled.
    Handle push(Time at, Event event) {
        const std::int64_t time = at.time_since_epoch().count();
        FOURFOLD_DCHECK(time >= now_, "{} is before {}", time, now_);
        Handle node = free_;
        if (node != nil) {
            free_ = nodes_[node].next;
        } else {
            node = static_cast<Handle>(nodes_.size());
            nodes_.emplace_back();
        }
        nodes_[node].time = time;
        nodes_[node].event = event;
        append(node);
        ++size_;
        return node;
    }

    void cancel(Handle node) {
        unlink(node);
        nodes_[node].next = free_;
        free_ = node;
        --size_;
    }

    /// No event is left at now().
    [[nodiscard]] bool instant_drained() const { return heads_[digit(now_, 0)] == nil; }

    /// The earliest pending time; does not advance. Requires: !empty().
    [[nodiscard]] Time min_time() const {
        const std::size_t level = lowest_level();
        const std::size_t first = lowest_digit(level);
        if (level == 0) {
            return Time(Duration((now_ & ~std::int64_t{63}) | static_cast<std::int64_t>(first)));
        }
        return Time(Duration(earliest(heads_[level * 64 + first])));
    }

    /// Moves now() to the earliest pending time. Requires: !empty(), instant_drained().
    void advance() {
        const std::size_t level = lowest_level();
        const std::size_t first = lowest_digit(level);
        if (level == 0) {
            now_ = (now_ & ~std::int64_t{63}) | static_cast<std::int64_t>(first);
            return;
        }
        const std::size_t bucket = level * 64 + first;
        Handle node = heads_[bucket];
        now_ = earliest(node);
        heads_[bucket] = nil;
        occupied_[level] &= ~(std::uint64_t{1} << first);
        if (occupied_[level] == 0) levels_ &= ~(1U << level);
        while (node != nil) {
            const Handle next = nodes_[node].next;
            append(node);
            node = next;
        }
    }

    /// The first event at now(). Requires: !instant_drained().
    Event pop() {
        const Handle node = heads_[digit(now_, 0)];
        const Event event = nodes_[node].event;
        cancel(node);
        return event;
    }

  private:
    static constexpr Handle nil = ~Handle{0};
    static constexpr std::size_t level_count = 11;  // 6 bits each: all of int64

    struct Node {
        std::int64_t time;
        Event event;
        Handle next, previous;  // of a bucket's first node, `previous` is its last
        std::uint32_t bucket;
    };

    static std::size_t digit(std::int64_t time, std::size_t level) {
        return static_cast<std::size_t>(time >> (6 * level)) & 63;
    }
    [[nodiscard]] std::size_t lowest_level() const {
        FOURFOLD_DCHECK(levels_ != 0, "the queue is empty");
        if (levels_ == 0) __builtin_unreachable();  // else g++ 14 warns of a digit of level 32
        return static_cast<std::size_t>(std::countr_zero(levels_));
    }
    [[nodiscard]] std::size_t lowest_digit(std::size_t level) const {
        return static_cast<std::size_t>(std::countr_zero(occupied_[level]));
    }
    [[nodiscard]] std::int64_t earliest(Handle node) const {
        std::int64_t time = nodes_[node].time;
        for (node = nodes_[node].next; node != nil; node = nodes_[node].next) {
            if (nodes_[node].time < time) time = nodes_[node].time;
        }
        return time;
    }

    void append(Handle node) {
        const auto difference = static_cast<std::uint64_t>(nodes_[node].time ^ now_);
        const std::size_t level =
            difference == 0 ? 0 : static_cast<std::size_t>(63 - std::countl_zero(difference)) / 6;
        const std::size_t place = digit(nodes_[node].time, level);
        const std::size_t bucket = level * 64 + place;
        Node& added = nodes_[node];
        added.next = nil;
        added.bucket = static_cast<std::uint32_t>(bucket);
        const Handle head = heads_[bucket];
        if (head == nil) {
            heads_[bucket] = node;
            added.previous = node;
            occupied_[level] |= std::uint64_t{1} << place;
            levels_ |= 1U << level;
        } else {
            const Handle last = nodes_[head].previous;
            nodes_[last].next = node;
            added.previous = last;
            nodes_[head].previous = node;
        }
    }

    void unlink(Handle node) {
        const Node& gone = nodes_[node];
        const Handle head = heads_[gone.bucket];
        if (node == head) {
            heads_[gone.bucket] = gone.next;
            if (gone.next != nil) {
                nodes_[gone.next].previous = gone.previous;
            } else {
                const std::size_t level = gone.bucket / 64;
                occupied_[level] &= ~(std::uint64_t{1} << (gone.bucket % 64));
                if (occupied_[level] == 0) levels_ &= ~(1U << level);
            }
            return;
        }
        nodes_[gone.previous].next = gone.next;
        nodes_[gone.next != nil ? gone.next : head].previous = gone.previous;
    }

    std::int64_t now_ = 0;
    std::size_t size_ = 0;
    std::uint32_t levels_ = 0;  // bit l: level l has an occupied bucket
    Handle free_ = nil;
    std::array<std::uint64_t, level_count> occupied_{};
    std::array<Handle, level_count * 64> heads_;
    std::vector<Node> nodes_;
};

}  // namespace fourfold
