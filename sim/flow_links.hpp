#pragma once

// The fluid link model. Every transfer, a message or a whole collective, is an activity with an
// uncontended time T and a number of bytes on each link that it uses. Work is T * 2^48, done at x
// per picosecond; alone x is exactly 2^48 and the activity ends exactly at T.
//
// Rates are integers in 2^-16 B/s, so that no sum depends on its order:
//     full   = ceil(stream * S / T)       an activity's full-speed level, S = 2^16 * 10^12
//     demand = ceil(bytes_l * S / T)      what it asks of link l at full speed
//     weight = ceil(2^32 * bytes_l / stream)
// A link constrains only while the demands on it exceed its capacity C. Then levels rise together
// (max-min, Bertsekas and Gallager 1992, sec. 6.5.2): each round finds the smallest of all links'
//     floor((C * 2^32 - sum_frozen weight * level) / sum_active weight)
// and all full levels, and freezes at it every activity with that full level and all on every link
// with that level, together: one after the other the result would depend on the order of links. An
// activity frozen at `level` runs at x = 2^48, or floor(level * 2^48 / full) below its full level.
//
// Fairness is per send stream: a ring and a plain message on one edge get half of it each, and the
// ring, slowed there, leaves the rest of its other edges to others.

#include <cstdint>
#include <vector>

#include "sim/link_model.hpp"

namespace fourfold {

class FlowLinks {
  public:
    explicit FlowLinks(Run& run);

    void start(TaskId send);
    void join(TaskId part);
    void on_event(Event event);
    void settle();

  private:
    __extension__ using Wide = __int128;
    static constexpr std::int64_t full_speed = std::int64_t{1} << 48;

    struct Use {
        LinkId link;
        Wide demand;
        Wide weight;
        Bytes bytes;
    };
    struct Kind {  // of a transfer
        Wide full_level = 0;
        std::vector<Use> uses;  // none: the activity is a mere delay
    };
    struct Activity {
        TransferId transfer;
        std::uint32_t subject;  // a send's task or a collective
        Wide remaining;
        std::int64_t speed;
        Time updated;
        EventQueue::Handle end;
        std::uint32_t place;  // in active_
    };
    struct LinkState {
        Wide capacity;
        Wide demand = 0;
        std::uint32_t carrying = 0;
        Time since{};
        // Of the solve under way
        Wide frozen = 0, weight = 0;
    };

    void begin(TransferId transfer, std::uint32_t subject);
    void end(std::uint32_t slot);
    void solve();
    void set_speed(std::uint32_t slot, std::int64_t speed);
    void note_rate(const Activity& activity, std::int64_t speed);

    Run& run_;
    IdVector<TransferId, Kind> kinds_;
    IdVector<LinkId, LinkState> links_;
    IdVector<CollectiveId, std::uint32_t> arrived_;
    std::vector<Activity> activities_;
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> active_;  // slots of activities that use links
    std::uint32_t overloaded_ = 0;       // links whose demand exceeds their capacity
    bool changed_ = false;               // since the last solve, on a link that constrains or did
    // Buffers of solve()
    std::vector<std::uint32_t> unfrozen_;
    std::vector<LinkId> constraining_;
};

}  // namespace fourfold
