#pragma once

// The pending events of a run, a monotone radix queue (Ahuja, Mehlhorn, Orlin, Tarjan 1990) of base
// 64 on the picosecond.
//
// Assumption about the data: time only moves forward, most events are near, and many are equal.
// With `now` as the reference, an event of time t waits in the bucket (level, digit), where level
// is the highest base-64 digit in which t differs from now, and digit is t's digit there:
//
//     level 2  | ....#....#............ |   each bucket: events in the order of insertion
//     level 1  | ..#................... |
//     level 0  | ...#..#............... |   t = now with another last digit: exactly sorted
//
// To advance, the lowest bucket of the lowest occupied level is emptied: its earliest time is the
// new `now`, its events of that time are the instant's, the others go to lower levels. So every
// event moves down at most once per level, whatever the number of pending events.
//
// Most events are never cancelled: a bucket keeps them one after the other in a chain of chunks,
// and those that can be in a doubly linked list. Equal times come out in the order they were
// pushed, within each of these two sorts.
//
// Looking for the minimum must not advance: events pushed later, between the old `now` and the
// minimum, would be misplaced. So the loop asks `instant_drained`, and calls `advance` only when
// the instant is over.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "topology/check.hpp"
#include "topology/units.hpp"

namespace fourfold {

/// What an event means is its owner's business, but kinds 2^32 - 2 and above are the queue's.
struct Event {
    std::uint32_t kind;
    std::uint32_t subject;
};

class EventQueue {
  public:
    using Handle = std::uint32_t;

    EventQueue() { lists_.fill(nil); }

    [[nodiscard]] Time now() const { return Time(Duration(now_)); }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] std::size_t size() const { return size_; }

    /// Requires: at >= now().
    void push(Time at, Event event) {
        file({checked(at), event});
        ++size_;
    }

    /// The same. The handle is good until the event is popped or cancelled.
    Handle push_cancellable(Time at, Event event) {
        Handle handle = free_node_;
        if (handle == nil) {
            handle = static_cast<Handle>(nodes_.size());
            nodes_.emplace_back();
        } else {
            free_node_ = nodes_[handle].next;
        }
        nodes_[handle].time = checked(at);
        nodes_[handle].event = event;
        file(handle);
        ++size_;
        return handle;
    }

    void cancel(Handle handle) {
        if (nodes_[handle].bucket == in_instant) {
            nodes_[handle].event.kind = cancelled;
        } else {
            unlink(handle);
            free_node(handle);
        }
        --size_;
    }

    /// No event is left at now().
    [[nodiscard]] bool instant_drained() {
        while (next_ < instant_.size()) {
            const Event next = instant_[next_];
            if (next.kind != behind_handle) return false;
            if (nodes_[next.subject].event.kind != cancelled) return false;
            free_node(next.subject);
            ++next_;
        }
        return true;
    }

    /// Moves now() to the earliest pending time. Requires: !empty(), instant_drained().
    void advance() {
        instant_.clear();
        next_ = 0;
        const std::size_t id = take_first_bucket();
        const Chain chain = std::exchange(chains_[id], {});
        const Handle list = std::exchange(lists_[id], nil);
        now_ = std::min(earliest(chain), earliest(list));
        refile(chain);
        refile(list);
    }

    /// The first event at now(). Requires: !instant_drained().
    Event pop() {
        const Event event = instant_[next_++];
        --size_;
        if (event.kind != behind_handle) return event;
        free_node(event.subject);
        return nodes_[event.subject].event;
    }

  private:
    static constexpr std::uint32_t nil = ~std::uint32_t{0};
    static constexpr std::uint32_t cancelled = nil, behind_handle = nil - 1;  // kinds of events
    static constexpr std::size_t level_count = 11;  // 6 bits each: all of int64
    static constexpr std::size_t bucket_count = level_count * 64;
    static constexpr std::uint32_t in_instant = bucket_count;  // instead of a bucket
    static constexpr std::uint32_t chunk_size = 32, chunk_end = chunk_size - 1;

    struct Entry {
        std::int64_t time;
        Event event;
    };
    // From `first` to before `end`. The last place of a chunk says where the next begins.
    struct Chain {
        std::uint32_t first = nil, end = nil;
    };
    struct Node {
        std::int64_t time;
        Event event;
        Handle next, previous;  // of a list's first node, `previous` is its last
        std::uint32_t bucket;
    };

    [[nodiscard]] std::int64_t checked(Time at) const {
        const std::int64_t time = at.time_since_epoch().count();
        FOURFOLD_DCHECK(time >= now_, "{} is before {}", time, now_);
        return time;
    }

    static std::size_t digit(std::int64_t time, std::size_t level) {
        return static_cast<std::size_t>(time >> (6 * level)) & 63;
    }
    // Requires: time > now_.
    [[nodiscard]] std::size_t bucket_of(std::int64_t time) const {
        const auto difference = static_cast<std::uint64_t>(time ^ now_);
        const auto level = static_cast<std::size_t>(63 - std::countl_zero(difference)) / 6;
        return level * 64 + digit(time, level);
    }
    void mark(std::size_t id) {
        occupied_[id / 64] |= std::uint64_t{1} << (id % 64);
        levels_ |= 1U << (id / 64);
    }
    void unmark(std::size_t id) {
        occupied_[id / 64] &= ~(std::uint64_t{1} << (id % 64));
        if (occupied_[id / 64] == 0) levels_ &= ~(1U << (id / 64));
    }
    std::size_t take_first_bucket() {
        FOURFOLD_DCHECK(levels_ != 0, "the queue is empty");
        if (levels_ == 0) __builtin_unreachable();  // else g++ 14 warns of a digit of level 32
        const auto level = static_cast<std::size_t>(std::countr_zero(levels_));
        std::uint64_t& occupied = occupied_[level];
        const std::size_t id = level * 64 + static_cast<std::size_t>(std::countr_zero(occupied));
        occupied &= occupied - 1;
        if (occupied == 0) levels_ &= levels_ - 1;
        return id;
    }

    // Inlined, because one pop and push take a fifth longer if it is not.
    [[gnu::always_inline]] void file(Entry entry) {
        if (entry.time == now_) {
            instant_.push_back(entry.event);
            return;
        }
        const std::size_t id = bucket_of(entry.time);
        Chain& chain = chains_[id];
        if (chain.end % chunk_size == chunk_end) {
            if (chain.first == nil) mark(id);
            add_chunk(chain);
        }
        entries_[chain.end++] = entry;
    }
    void refile(Chain chain) {
        if (chain.first == nil) return;
        for (std::uint32_t place = chain.first; place != chain.end;) {
            const Entry entry = entries_[place];
            if (place % chunk_size == chunk_end) {
                free_chunk(place);
                place = entry.event.subject;
            } else {
                file(entry);
                ++place;
            }
        }
        free_chunk(chain.end - 1);
    }
    [[nodiscard]] std::int64_t earliest(Chain chain) const {
        std::int64_t time = std::numeric_limits<std::int64_t>::max();
        for (std::uint32_t place = chain.first; place != chain.end;) {
            if (place % chunk_size == chunk_end) {
                place = entries_[place].event.subject;
            } else {
                time = std::min(time, entries_[place++].time);
            }
        }
        return time;
    }
    void add_chunk(Chain& chain) {
        std::uint32_t chunk = free_chunk_;
        if (chunk == nil) {
            chunk = static_cast<std::uint32_t>(entries_.size());
            entries_.resize(entries_.size() + chunk_size);
        } else {
            free_chunk_ = entries_[chunk + chunk_end].event.subject;
        }
        if (chain.first == nil) {
            chain.first = chunk;
        } else {
            entries_[chain.end].event.subject = chunk;
        }
        chain.end = chunk;
    }
    void free_chunk(std::uint32_t place_in_it) {
        const std::uint32_t chunk = place_in_it - place_in_it % chunk_size;
        entries_[chunk + chunk_end].event.subject = std::exchange(free_chunk_, chunk);
    }

    void file(Handle handle) {
        Node& added = nodes_[handle];
        if (added.time == now_) {
            added.bucket = in_instant;
            instant_.push_back({behind_handle, handle});
            return;
        }
        const std::size_t id = bucket_of(added.time);
        added.bucket = static_cast<std::uint32_t>(id);
        added.next = nil;
        const Handle head = lists_[id];
        if (head == nil) {
            mark(id);
            lists_[id] = handle;
            added.previous = handle;
        } else {
            added.previous = std::exchange(nodes_[head].previous, handle);
            nodes_[added.previous].next = handle;
        }
    }
    void refile(Handle list) {
        while (list != nil) file(std::exchange(list, nodes_[list].next));
    }
    [[nodiscard]] std::int64_t earliest(Handle list) const {
        std::int64_t time = std::numeric_limits<std::int64_t>::max();
        for (; list != nil; list = nodes_[list].next) time = std::min(time, nodes_[list].time);
        return time;
    }
    void unlink(Handle handle) {
        const Node& gone = nodes_[handle];
        Handle& head = lists_[gone.bucket];
        if (handle != head) {
            nodes_[gone.previous].next = gone.next;
            nodes_[gone.next != nil ? gone.next : head].previous = gone.previous;
            return;
        }
        head = gone.next;
        if (head != nil) {
            nodes_[head].previous = gone.previous;
        } else if (chains_[gone.bucket].first == nil) {
            unmark(gone.bucket);
        }
    }
    void free_node(Handle handle) { nodes_[handle].next = std::exchange(free_node_, handle); }

    std::int64_t now_ = 0;
    std::size_t size_ = 0;
    std::vector<Event> instant_;  // those at now_
    std::size_t next_ = 0;        // of the instant's
    std::uint32_t levels_ = 0;    // bit l: level l has an occupied bucket
    std::array<std::uint64_t, level_count> occupied_{};
    std::array<Chain, bucket_count> chains_;
    std::array<Handle, bucket_count> lists_;
    std::vector<Entry> entries_;
    std::vector<Node> nodes_;
    std::uint32_t free_chunk_ = nil;
    Handle free_node_ = nil;
};

}  // namespace fourfold
