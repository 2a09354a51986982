#include "sim/max_min.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "topology/check.hpp"

// The levels are the only ones with
//     level of an activity = min(its full level, the levels of its links)
//     level of a link      = the smallest L with
//                            sum_{level < L} weight * level + sum_{level >= L} weight * (L + 1) > C
// (by induction over the rounds in the header: each settles whoever has the lowest level left). So
// whoever still meets this after a change can stay, however the levels came about; and levels
// depend only on lower ones. One sweep upwards from the links that changed moves all that must move
// and no other:
//
//     level ^   |  rising: each counts the same, wherever it will stop
//           |===+=================================== sweep
//           |   |  settled: final
//
// Of a touched link, `settled` adds up what its activities below the sweep have and `rising` the
// weights of the others; `limit` is the link's level if none of these stops before it. The sweep
// stops at such limits, and where a touched link was full before:
// - The limit holds: the link is full. Whoever is above comes down to the sweep.
// - Some have stopped before the limit: the link is counted again, and the limit rises.
// - The link was full here and is not: whoever nothing else holds here goes up, to where its other
//   links were full or this one is expected to be. The sweep stops there too, and whoever should
//   be higher yet goes on. A guess that is right spares the links in between: who goes to its full
//   level at once fills many that are not full in the end.
// Who moves touches its links, which then stop the sweep too; but not those that were not full and
// have `room` for one unit more than everybody has. None of them can be full at the sweep's level
// because of that: an activity there and one above count the same.
//
// In full: the same, with everybody at the full level and all links touched.
//
// Thousands of activities do not fit a cache: uses are 8 bytes, levels lie apart, and weights, of
// which most are alike, are kept once for all uses in a row.

namespace fourfold {
namespace {

using Wide = MaxMin::Wide;

constexpr Wide level_scale = Wide{1'000'000'000'000} << 16;  // S: bytes per ps to 2^-16 B/s

// Above all; numeric_limits has no 128 bits. Levels of links beyond 2^47 B/s do not fit 64 bits.
constexpr Wide no_level = Wide{1} << 126;

Wide ceil_ratio(Wide numerator, Wide denominator) {
    return (numerator + denominator - 1) / denominator;
}

std::int64_t speed_at(Wide level, Wide full_level) {
    if (level >= full_level) return MaxMin::full_speed;
    return std::max(static_cast<std::int64_t>((level << 48) / full_level), std::int64_t{1});
}

}  // namespace

MaxMin::MaxMin(const IdVector<LinkId, BytesPerSecond>& rates) : links_(rates.size()) {
    for (const LinkId id : links_.keys()) {
        links_[id].capacity = Wide{rates[id].value} << 16;
        links_[id].level = no_level;
    }
}

ActivityKindId MaxMin::add_kind(Duration alone, Bytes stream, std::span<const LinkUse> uses) {
    const auto first = static_cast<std::uint32_t>(uses_.size());
    if (uses.empty()) return kinds_.push_back({no_level, first, first});
    const Wide time = alone.count();
    for (const LinkUse& use : uses) {
        const Wide demand = ceil_ratio(use.bytes.value * level_scale, time);
        const Wide weight = ceil_ratio(Wide{use.bytes.value} << 32, stream.value);
        FOURFOLD_CHECK(demand <= links_[use.link].capacity,
                       "a transfer alone would be faster than its link {}", use.link.value);
        const Wide all = use.copies * weight;
        if (weights_.empty() || weights_.back() != all) weights_.push_back(all);
        uses_.push_back({use.link, static_cast<std::uint32_t>(weights_.size() - 1)});
        demands_.push_back(use.copies * demand);
    }
    return kinds_.push_back({ceil_ratio(stream.value * level_scale, time), first,
                             static_cast<std::uint32_t>(uses_.size())});
}

void MaxMin::set_rate(LinkId id, BytesPerSecond rate) {
    LinkState& link = links_[id];
    const std::size_t constrained = link.constrained();
    link.capacity = Wide{rate.value} << 16;
    measure_room(link);
    if (constrained > 0 || link.constrains()) note_change(id, constrained);
}

ActivityId MaxMin::start(ActivityKindId kind_id) {
    ActivityId id{};
    if (free_.empty()) {
        id = activities_.push_back({});
        levels_.push_back({});
        moved_.resize(id.value / 64 + 1);
    } else {
        id = free_.back();
        free_.pop_back();
    }
    const Kind& kind = kinds_[kind_id];
    Activity& activity = activities_[id];
    activity.full_level = levels_[id] = kind.full_level;
    activity.first = kind.first;
    activity.last = kind.last;
    activity.speed = full_speed;
    activity.places.clear();
    for (std::uint32_t i = kind.first; i < kind.last; ++i) {
        const Use use = uses_[i];
        LinkState& link = links_[use.link];
        const std::size_t constrained = link.constrained();
        const auto place = static_cast<std::uint32_t>(link.crossings.size());
        link.crossings.push_back({id, i - kind.first, use.weight});
        activity.places.push_back(place);
        link.demand += demands_[i];
        link.room -= weights_[use.weight] * (kind.full_level + 1);
        if (constrained > 0 || link.constrains()) note_change(use.link, constrained);
    }
    return id;
}

void MaxMin::end(ActivityId id) {
    Activity& activity = activities_[id];
    for (std::uint32_t i = activity.first; i < activity.last; ++i) {
        const Use use = uses_[i];
        LinkState& link = links_[use.link];
        const std::size_t constrained = link.constrained();
        const std::uint32_t place = activity.places[i - activity.first];
        if (place + 1 < link.crossings.size()) {
            const Crossing& last = link.crossings.back();
            activities_[last.activity].places[last.use] = place;
            link.crossings[place] = last;
        }
        link.crossings.pop_back();
        link.demand -= demands_[i];
        link.room += weights_[use.weight] * (levels_[id] + 1);
        if (constrained > 0) note_change(use.link, constrained);
    }
    levels_[id] = activity.full_level;
    free_.push_back(id);
}

// Of a link that constrains or did.
void MaxMin::note_change(LinkId id, std::size_t constrained_before) {
    LinkState& link = links_[id];
    const std::size_t constrained = link.constrained();
    constrained_ += constrained - constrained_before;
    if (!std::exchange(link.changed, true)) changed_links_.push_back(id);
    if (constrained_before == 0) {
        link.place = static_cast<std::uint32_t>(constraining_.size());
        link.constraining = true;
        constraining_.push_back(id);
        measure_room(link);
    } else if (constrained == 0) {
        links_[constraining_.back()].place = link.place;
        constraining_[link.place] = constraining_.back();
        constraining_.pop_back();
        link.constraining = false;
    }
}

void MaxMin::measure_room(LinkState& link) {
    link.room = link.capacity << 32;
    for (const Crossing& crossing : link.crossings) {
        link.room -= weights_[crossing.weight] * (levels_[crossing.activity] + 1);
    }
}

std::span<const ActivityId> MaxMin::solve() {
    if (changed_links_.empty()) return {};
    std::size_t changed = 0;
    for (const LinkId id : changed_links_) changed += links_[id].crossings.size();
    return changed > constrained_ / 2 ? solve_in_full() : solve_locally();
}

std::span<const ActivityId> MaxMin::solve_locally() {
    for (const LinkId id : changed_links_) {
        if (links_[id].level != no_level || links_[id].room < 0) touch(id);
    }
    sweep();
    return finish();
}

std::span<const ActivityId> MaxMin::solve_in_full() {
    const auto lift = [this](LinkId id) {
        links_[id].level = no_level;
        for (const Crossing& crossing : links_[id].crossings) {
            move(crossing.activity, activities_[crossing.activity].full_level);
        }
    };
    std::for_each(changed_links_.begin(), changed_links_.end(), lift);  // some constrain no longer
    std::for_each(constraining_.begin(), constraining_.end(), lift);
    for (const LinkId id : constraining_) {
        measure_room(links_[id]);
        touch(id);
    }
    sweep();
    return finish();
}

void MaxMin::sweep() {
    for (const LinkId id : touched_) enter(id, 0);
    while (!stops_.empty()) {
        const Wide level = stops_.front().level;
        meet_at(level);
        move_at(level);
    }
}

// Decides which links are full at this level, or no longer are, before anybody moves: links must
// not change under those that come later.
void MaxMin::meet_at(Wide level) {
    full_.clear();
    eased_.clear();
    while (!stops_.empty() && stops_.front().level == level) {
        const LinkId id = stops_.front().link;
        LinkState& link = links_[id];
        std::pop_heap(stops_.begin(), stops_.end(), std::greater{});
        stops_.pop_back();
        if (link.lowest_rising < level) count(link, level);
        const Wide limit = link.limit();
        if (limit == level) {
            link.level = level;
            full_.push_back(id);
            continue;
        }
        if (link.level_before == level) {
            link.level_before = expected_level(link, level);
            eased_.push_back(id);
        }
        stop_at(std::min(limit, link.level_before), id);
    }
}

void MaxMin::move_at(Wide level) {
    moves_.clear();
    for (const LinkId id : full_) {
        for (const Crossing& crossing : links_[id].crossings) {
            const Wide from = levels_[crossing.activity];
            if (from <= level) continue;
            moves_.push_back({crossing.activity, from});
            move(crossing.activity, level);
        }
    }
    const std::size_t stopped = moves_.size();
    for (const LinkId id : eased_) {
        for (const Crossing& crossing : links_[id].crossings) {
            if (levels_[crossing.activity] != level) continue;
            const Wide next = next_level(crossing.activity);
            if (next == level) continue;
            moves_.push_back({crossing.activity, level});
            move(crossing.activity, next);
        }
    }
    const std::size_t known = touched_.size();
    for (std::size_t i = 0; i < moves_.size(); ++i) {
        const auto [activity, from] = moves_[i];
        const Wide rise = levels_[activity] - from;
        for (const Use& use : uses(activity)) {
            LinkState& link = links_[use.link];
            const Wide weight = weights_[use.weight];
            link.room -= weight * rise;
            if (i < stopped) {
                link.settled += weight * level;
                link.rising -= weight;
            }
            if (link.must_be_touched()) touch(use.link);
        }
    }
    for (std::size_t i = known; i < touched_.size(); ++i) enter(touched_[i], level + 1);
}

// The next level of a link that is no longer full at this one, if only those whom it held move.
Wide MaxMin::expected_level(const LinkState& link, Wide level) const {
    Wide expected = link.limit(), lowest_above = level;
    while (lowest_above < expected && expected < no_level) {
        Wide left = link.capacity << 32, rising = 0;
        lowest_above = no_level;
        for (const Crossing& crossing : link.crossings) {
            const Wide now = levels_[crossing.activity];
            const Wide weight = weights_[crossing.weight];
            if (now != level && now < expected) {
                left -= weight * now;
            } else {
                rising += weight;
                if (now != level) lowest_above = std::min(lowest_above, now);
            }
        }
        expected = rising > 0 ? left / rising : no_level;
    }
    return expected;
}

void MaxMin::move(ActivityId id, Wide level) {
    if (std::exchange(levels_[id], level) == level) return;
    moved_[id.value / 64] |= std::uint64_t{1} << id.value % 64;
}

// Where its links hold an activity, or are going to unless they are found not to be full there.
Wide MaxMin::next_level(ActivityId activity) const {
    Wide next = activities_[activity].full_level;
    for (const Use& use : uses(activity)) {
        const LinkState& link = links_[use.link];
        next = std::min(next, link.level);
        if (link.touched) next = std::min(next, link.level_before);
    }
    return next;
}

void MaxMin::touch(LinkId id) {
    links_[id].touched = true;
    touched_.push_back(id);
}

// Of a link that has been touched, into the sweep.
void MaxMin::enter(LinkId id, Wide below) {
    LinkState& link = links_[id];
    link.level_before = std::exchange(link.level, no_level);
    count(link, below);
    stop_at(std::min(link.limit(), link.level_before), id);
}

void MaxMin::stop_at(Wide level, LinkId id) {
    if (level == no_level) return;
    stops_.push_back({level, id});
    std::push_heap(stops_.begin(), stops_.end(), std::greater{});
}

void MaxMin::count(LinkState& link, Wide below) {
    Wide settled = 0, rising = 0, lowest = no_level;
    for (const Crossing& crossing : link.crossings) {
        const Wide level = levels_[crossing.activity];
        const Wide weight = weights_[crossing.weight];
        if (level < below) {
            settled += weight * level;
        } else {
            rising += weight;
            lowest = std::min(lowest, level);
        }
    }
    link.settled = settled;
    link.rising = rising;
    link.lowest_rising = lowest;
}

Wide MaxMin::LinkState::limit() const {
    if (!constrains() || rising == 0) return no_level;
    return ((capacity << 32) - settled) / rising;
}

// One branch: each of its parts alone would be mispredicted.
bool MaxMin::LinkState::must_be_touched() const {
    return (constraining & !touched & ((level != no_level) | (room < 0))) != 0;
}

std::span<const ActivityId> MaxMin::finish() {
    for (const LinkId id : touched_) links_[id].touched = false;
    for (const LinkId id : changed_links_) links_[id].changed = false;
    touched_.clear();
    changed_links_.clear();
    changed_.clear();
    for (std::uint32_t word = 0; word < moved_.size(); ++word) {
        for (std::uint64_t left = std::exchange(moved_[word], 0); left != 0; left &= left - 1) {
            const ActivityId id{64 * word + static_cast<std::uint32_t>(std::countr_zero(left))};
            Activity& activity = activities_[id];
            const std::int64_t speed = speed_at(levels_[id], activity.full_level);
            if (std::exchange(activity.speed, speed) != speed) changed_.push_back(id);
        }
    }
    return changed_;
}

}  // namespace fourfold
