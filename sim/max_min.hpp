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
    [[nodiscard]] Wide level(ActivityId activity) const { return levels_[activity]; }

  private:
    struct Use {
        LinkId link;
        std::uint32_t weight;  // in weights_
    };
    struct Kind {
        Wide full_level;
        std::uint32_t first, last;  // in uses_ and demands_
    };
    struct Activity {
        Wide full_level;
        std::uint32_t first, last;  // in uses_ and demands_
        std::int64_t speed;
        std::vector<std::uint32_t> places;  // of each use, in its link's `crossings`
    };
    struct Crossing {
        ActivityId activity;
        std::uint32_t use;
        std::uint32_t weight;  // in weights_
    };
    // What a move of an activity looks at comes first, in one cache line.
    struct alignas(64) LinkState {
        Wide level;             // at which it is full
        Wide level_before = 0;  // at which it was, or is expected to be, above the sweep
        Wide room = 0;          // while it constrains: C * 2^32 - sum weight * (level + 1)
        bool constraining = false;
        bool touched = false;     // by the sweep under way
        bool changed = false;     // since the last solve, and constrains or did
        std::uint32_t place = 0;  // in constraining_, while it constrains
        // Of the sweep
        Wide settled = 0, rising = 0, lowest_rising = 0;

        Wide capacity;
        Wide demand = 0;
        std::vector<Crossing> crossings;

        [[nodiscard]] bool constrains() const { return demand > capacity; }
        /// How many crossings it constrains.
        [[nodiscard]] std::size_t constrained() const {
            return constrains() ? crossings.size() : 0;
        }
        [[nodiscard]] Wide limit() const;
        [[nodiscard]] bool must_be_touched() const;
    };
    struct Stop {
        Wide level;
        LinkId link;
        bool operator>(const Stop& other) const { return level > other.level; }
    };
    struct Move {
        ActivityId activity;
        Wide from;
    };

    [[nodiscard]] std::span<const Use> uses(ActivityId id) const {
        const Activity& activity = activities_[id];
        return {uses_.data() + activity.first, uses_.data() + activity.last};
    }
    void note_change(LinkId link, std::size_t constrained_before);
    void measure_room(LinkState& link);
    void sweep();
    void touch(LinkId link);
    void enter(LinkId link, Wide below);
    void stop_at(Wide level, LinkId link);
    void count(LinkState& link, Wide below);
    void meet_at(Wide level);
    void move_at(Wide level);
    [[nodiscard]] Wide expected_level(const LinkState& link, Wide level) const;
    void move(ActivityId activity, Wide level);
    [[nodiscard]] Wide next_level(ActivityId activity) const;
    std::span<const ActivityId> finish();

    IdVector<ActivityKindId, Kind> kinds_;
    std::vector<Use> uses_;
    std::vector<Wide> demands_, weights_;
    IdVector<LinkId, LinkState> links_;
    IdVector<ActivityId, Activity> activities_;
    IdVector<ActivityId, Wide> levels_;
    std::vector<ActivityId> free_;
    std::vector<LinkId> constraining_, changed_links_;
    std::size_t constrained_ = 0;  // crossings, of all links that constrain
    // Buffers of a sweep
    std::vector<Stop> stops_;  // a heap, the lowest first
    std::vector<LinkId> touched_, full_, eased_;
    std::vector<Move> moves_;
    std::vector<std::uint64_t> moved_;  // a bit for each activity
    std::vector<ActivityId> changed_;
};

}  // namespace fourfold
