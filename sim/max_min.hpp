#pragma once

// Who gets how much of the links that activities share, in integers, so that no sum depends on its
// order. An activity has a time alone T, the bytes of one of its send streams, and the bytes that
// it puts on each link that it uses. Rates are in 2^-16 B/s, S = 2^16 * 10^12:
//     full   = ceil(stream * S / T)       an activity's full-speed level
//     demand = ceil(bytes_l * S / T)      what it asks of link l at full speed
//     weight = ceil(2^32 * bytes_l / stream)
// A link constrains only while the demands on it exceed its capacity C. Then levels rise together
// (max-min, Bertsekas and Gallager 1992, sec. 6.5.2): each round finds the smallest of all links'
//     floor((C * 2^32 - sum_frozen weight * level) / sum_active weight)
// and all full levels, and freezes at it every activity with that full level and all on every link
// with that level, together: one after the other the result would depend on the order of links. An
// activity frozen at `level` runs at 2^48, or floor(level * 2^48 / full) below its full level.
//
// Fairness is per send stream: a ring and a plain message on one edge get half of it each, and the
// ring, slowed there, leaves the rest of its other edges to others.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/program.hpp"
#include "topology/ids.hpp"
#include "topology/units.hpp"

namespace fourfold {

using ActivityId = Id<struct ActivityTag>;
using ActivityKindId = Id<struct ActivityKindTag>;

class MaxMin {
  public:
    __extension__ using Wide = __int128;
    static constexpr std::int64_t full_speed = std::int64_t{1} << 48;

    explicit MaxMin(const IdVector<LinkId, BytesPerSecond>& rates);

    /// Requires: a time and a stream above zero, and no link that is slower than the bytes on it
    /// in that time; any, if there are no uses. Copies run at the same speed.
    ActivityKindId add_kind(Duration alone, Bytes stream, std::span<const LinkUse> uses);

    /// At full speed until the next solve. Ids of activities that have ended are given again.
    ActivityId start(ActivityKindId kind);
    void end(ActivityId activity);
    /// From the next solve on. Activities alone may be faster than it: then it constrains them.
    void set_rate(LinkId link, BytesPerSecond rate);

    /// Shares the links among all that have started and not ended.
    /// Returns: whose speed changed, in the order of ids; good until the next call.
    std::span<const ActivityId> solve();

    /// The two ways to do so, between which `solve` chooses, to the same levels: from the links
    /// that changed, or from nothing.
    std::span<const ActivityId> solve_locally();
    std::span<const ActivityId> solve_in_full();

    [[nodiscard]] std::int64_t speed(ActivityId activity) const {
        return activities_[activity].speed;
    }
    [[nodiscard]] Wide level(ActivityId activity) const { return levels_[activity].now; }

  private:
    struct Use {
        LinkId link;
        Wide demand;
        Wide weight;
    };
    struct Kind {
        Wide full_level;
        std::size_t first, last;  // in uses_
    };
    struct Level {
        Wide now, full;
    };
    struct Activity {
        ActivityKindId kind;
        std::int64_t speed;
        std::vector<std::uint32_t> places;  // of each use, in its link's `crossings`
    };
    struct Crossing {
        ActivityId activity;
        std::uint32_t use;
        Wide weight;
    };
    // What a start and an end look at is in one cache line.
    struct alignas(64) LinkState {
        Wide capacity;
        Wide demand = 0;
        std::vector<Crossing> crossings;
        bool changed = false;     // since the last solve, and constrains or did
        bool touched = false;     // by the sweep under way
        std::uint32_t place = 0;  // in constraining_, while it constrains
        Wide level;               // at which it is full
        // Of the sweep
        Wide settled = 0, rising = 0, lowest_rising = 0, level_before = 0;

        [[nodiscard]] bool constrains() const { return demand > capacity; }
        /// How many crossings it constrains.
        [[nodiscard]] std::size_t constrained() const {
            return constrains() ? crossings.size() : 0;
        }
        [[nodiscard]] Wide limit() const;
    };
    struct Stop {
        Wide level;
        LinkId link;
        bool operator>(const Stop& other) const { return level > other.level; }
    };

    [[nodiscard]] std::span<const Use> uses(ActivityId activity) const {
        const Kind& kind = kinds_[activities_[activity].kind];
        return std::span(uses_).subspan(kind.first, kind.last - kind.first);
    }
    void note_change(LinkId link, std::size_t constrained_before);
    void sweep();
    void touch(LinkId link, Wide below);
    void stop_at(Wide level, LinkId link);
    void count(LinkState& link, Wide below);
    void meet_at(Wide level);
    void move_at(Wide level);
    [[nodiscard]] bool is_held(ActivityId activity, Wide level) const;
    std::span<const ActivityId> finish();

    IdVector<ActivityKindId, Kind> kinds_;
    std::vector<Use> uses_;
    IdVector<LinkId, LinkState> links_;
    IdVector<ActivityId, Activity> activities_;
    IdVector<ActivityId, Level> levels_;
    std::vector<ActivityId> free_;
    std::vector<LinkId> constraining_, changed_links_;
    std::size_t constrained_ = 0;  // crossings, of all links that constrain
    // Buffers of a sweep
    std::vector<Stop> stops_;  // a heap, the lowest first
    std::vector<LinkId> touched_, full_, eased_;
    std::vector<ActivityId> moved_, changed_;
};

}  // namespace fourfold
