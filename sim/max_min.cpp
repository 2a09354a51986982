#include "sim/max_min.hpp"

#include <algorithm>
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
// - The link was full here and is not: whoever else nothing holds here goes to its full level, from
//   where other links may bring it down.
// Who moves touches its links, which then stop the sweep too. None of them can be full at the
// sweep's level because of that: an activity there and one above count the same.
//
// In full: the same, with everybody at the full level and all links touched.

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
    const std::size_t first = uses_.size();
    if (uses.empty()) return kinds_.push_back({no_level, first, first});
    const Wide time = alone.count();
    for (const LinkUse& use : uses) {
        const Wide demand = ceil_ratio(use.bytes.value * level_scale, time);
        const Wide weight = ceil_ratio(Wide{use.bytes.value} << 32, stream.value);
        FOURFOLD_CHECK(demand <= links_[use.link].capacity,
                       "a transfer alone would be faster than its link {}", use.link.value);
        uses_.push_back({use.link, use.copies * demand, use.copies * weight});
    }
    return kinds_.push_back({ceil_ratio(stream.value * level_scale, time), first, uses_.size()});
}

void MaxMin::set_rate(LinkId id, BytesPerSecond rate) {
    LinkState& link = links_[id];
    const std::size_t constrained = link.constrained();
    link.capacity = Wide{rate.value} << 16;
    if (constrained > 0 || link.constrains()) note_change(id, constrained);
}

ActivityId MaxMin::start(ActivityKindId kind) {
    ActivityId id{};
    if (free_.empty()) {
        id = activities_.push_back({});
        levels_.push_back({});
    } else {
        id = free_.back();
        free_.pop_back();
    }
    Activity& activity = activities_[id];
    activity.kind = kind;
    activity.speed = full_speed;
    activity.places.clear();
    levels_[id] = {kinds_[kind].full_level, kinds_[kind].full_level};
    for (const Use& use : uses(id)) {
        LinkState& link = links_[use.link];
        const std::size_t constrained = link.constrained();
        const auto index = static_cast<std::uint32_t>(activity.places.size());
        activity.places.push_back(static_cast<std::uint32_t>(link.crossings.size()));
        link.crossings.push_back({id, index, use.weight});
        link.demand += use.demand;
        if (constrained > 0 || link.constrains()) note_change(use.link, constrained);
    }
    return id;
}

void MaxMin::end(ActivityId id) {
    const std::span<const Use> ended = uses(id);
    for (std::size_t i = 0; i < ended.size(); ++i) {
        LinkState& link = links_[ended[i].link];
        const std::size_t constrained = link.constrained();
        const std::uint32_t place = activities_[id].places[i];
        if (place + 1 < link.crossings.size()) {
            const Crossing& last = link.crossings.back();
            activities_[last.activity].places[last.use] = place;
            link.crossings[place] = last;
        }
        link.crossings.pop_back();
        link.demand -= ended[i].demand;
        if (constrained > 0) note_change(ended[i].link, constrained);
    }
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
        constraining_.push_back(id);
    } else if (constrained == 0) {
        links_[constraining_.back()].place = link.place;
        constraining_[link.place] = constraining_.back();
        constraining_.pop_back();
    }
}

std::span<const ActivityId> MaxMin::solve() {
    std::size_t changed = 0;
    for (const LinkId id : changed_links_) changed += links_[id].crossings.size();
    return changed > constrained_ / 2 ? solve_in_full() : solve_locally();
}

std::span<const ActivityId> MaxMin::solve_locally() {
    changed_.clear();
    for (const LinkId id : changed_links_) touch(id, 0);
    sweep();
    return finish();
}

std::span<const ActivityId> MaxMin::solve_in_full() {
    changed_.clear();
    const auto lift = [&](LinkId id) {
        links_[id].level = no_level;
        for (const Crossing& crossing : links_[id].crossings) {
            Level& level = levels_[crossing.activity];
            if (level.now == level.full) continue;
            level.now = level.full;
            changed_.push_back(crossing.activity);
        }
    };
    std::for_each(changed_links_.begin(), changed_links_.end(), lift);  // some constrain no longer
    std::for_each(constraining_.begin(), constraining_.end(), lift);
    for (const LinkId id : constraining_) touch(id, 0);
    sweep();
    return finish();
}

void MaxMin::sweep() {
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
            link.level_before = no_level;
            eased_.push_back(id);
        }
        stop_at(std::min(limit, link.level_before), id);
    }
}

void MaxMin::move_at(Wide level) {
    moved_.clear();
    for (const LinkId id : full_) {
        for (const Crossing& crossing : links_[id].crossings) {
            Wide& now = levels_[crossing.activity].now;
            if (now <= level) continue;
            now = level;
            moved_.push_back(crossing.activity);
        }
    }
    for (const LinkId id : eased_) {
        for (const Crossing& crossing : links_[id].crossings) {
            const ActivityId activity = crossing.activity;
            if (levels_[activity].now != level || is_held(activity, level)) continue;
            levels_[activity].now = levels_[activity].full;
            moved_.push_back(activity);
        }
    }
    changed_.insert(changed_.end(), moved_.begin(), moved_.end());
    for (const ActivityId activity : moved_) {
        if (levels_[activity].now > level) continue;
        for (const Use& use : uses(activity)) {
            LinkState& link = links_[use.link];
            if (!link.touched) continue;
            link.settled += level * use.weight;
            link.rising -= use.weight;
        }
    }
    for (const ActivityId activity : moved_) {
        for (const Use& use : uses(activity)) {
            const LinkState& link = links_[use.link];
            if (link.touched || !link.constrains()) continue;
            touch(use.link, level + 1);
            FOURFOLD_DCHECK(link.level_before > level && link.limit() > level);
        }
    }
}

bool MaxMin::is_held(ActivityId activity, Wide level) const {
    const std::span<const Use> used = uses(activity);
    return levels_[activity].full == level ||
           std::any_of(used.begin(), used.end(),
                       [&](const Use& use) { return links_[use.link].level == level; });
}

void MaxMin::touch(LinkId id, Wide below) {
    LinkState& link = links_[id];
    link.touched = true;
    touched_.push_back(id);
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
    link.settled = link.rising = 0;
    link.lowest_rising = no_level;
    for (const Crossing& crossing : link.crossings) {
        const Wide level = levels_[crossing.activity].now;
        if (level < below) {
            link.settled += level * crossing.weight;
        } else {
            link.rising += crossing.weight;
            link.lowest_rising = std::min(link.lowest_rising, level);
        }
    }
}

Wide MaxMin::LinkState::limit() const {
    if (!constrains() || rising == 0) return no_level;
    return ((capacity << 32) - settled) / rising;
}

std::span<const ActivityId> MaxMin::finish() {
    for (const LinkId id : touched_) links_[id].touched = false;
    for (const LinkId id : changed_links_) links_[id].changed = false;
    touched_.clear();
    changed_links_.clear();
    std::erase_if(changed_, [&](ActivityId id) {
        const std::int64_t speed = speed_at(levels_[id].now, levels_[id].full);
        return std::exchange(activities_[id].speed, speed) == speed;
    });
    std::sort(changed_.begin(), changed_.end());
    return changed_;
}

}  // namespace fourfold
