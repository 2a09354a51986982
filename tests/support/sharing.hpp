#pragma once

// Activities that share links, for tests, the benchmark and the fuzzer of sim/max_min.hpp.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/max_min.hpp"

namespace fourfold {

using Rates = IdVector<LinkId, BytesPerSecond>;

struct Sharer {
    std::vector<LinkUse> uses;
    Bytes stream{};
    Duration alone{};
};

/// Puts `bytes` more on the link; no faster than it can.
inline void add_use(Sharer& sharer, LinkId link, Bytes bytes, const Rates& rates) {
    auto use = std::find_if(sharer.uses.begin(), sharer.uses.end(),
                            [&](const LinkUse& other) { return other.link == link; });
    if (use == sharer.uses.end()) use = sharer.uses.insert(use, {link, {}});
    use->bytes += bytes;
    sharer.alone = std::max(sharer.alone, use->bytes / rates[link]);
}

/// The rounds of sim/max_min.hpp to the letter, for as many levels as sharers. Of each, the level.
inline std::vector<MaxMin::Wide> fill(std::span<const Sharer> sharers, const Rates& rates) {
    using Wide = MaxMin::Wide;
    constexpr Wide scale = Wide{1'000'000'000'000} << 16;
    const auto ceil_ratio = [](Wide a, Wide b) { return (a + b - 1) / b; };
    const auto full_level = [&](const Sharer& sharer) {
        return ceil_ratio(sharer.stream.value * scale, sharer.alone.count());
    };
    const auto weight = [&](const Sharer& sharer, const LinkUse& use) {
        return ceil_ratio(Wide{use.bytes.value} << 32, sharer.stream.value);
    };
    IdVector<LinkId, Wide> room(rates.size());
    for (const LinkId link : rates.keys()) room[link] = Wide{rates[link].value} << 16;
    IdVector<LinkId, Wide> demand(rates.size());
    for (const Sharer& sharer : sharers) {
        for (const LinkUse& use : sharer.uses) {
            demand[use.link] += ceil_ratio(use.bytes.value * scale, sharer.alone.count());
        }
    }
    const auto constrains = [&](LinkId link) {
        return demand[link] > Wide{rates[link].value} << 16;
    };
    for (Wide& each : room) each <<= 32;

    std::vector<std::optional<Wide>> frozen(sharers.size());
    while (std::find(frozen.begin(), frozen.end(), std::nullopt) != frozen.end()) {
        IdVector<LinkId, Wide> active(rates.size());
        for (std::size_t i = 0; i < sharers.size(); ++i) {
            if (frozen[i]) continue;
            for (const LinkUse& use : sharers[i].uses) active[use.link] += weight(sharers[i], use);
        }
        std::optional<Wide> lowest;
        const auto limit = [&](Wide level) { lowest = std::min(lowest.value_or(level), level); };
        for (const LinkId link : rates.keys()) {
            if (constrains(link) && active[link] > 0) limit(room[link] / active[link]);
        }
        for (std::size_t i = 0; i < sharers.size(); ++i) {
            if (!frozen[i]) limit(full_level(sharers[i]));
        }
        const auto is_full = [&](const LinkUse& use) {
            return constrains(use.link) && room[use.link] / active[use.link] == *lowest;
        };
        std::vector<std::size_t> stopped;
        for (std::size_t i = 0; i < sharers.size(); ++i) {
            if (frozen[i]) continue;
            const std::vector<LinkUse>& uses = sharers[i].uses;
            if (full_level(sharers[i]) == *lowest ||
                std::any_of(uses.begin(), uses.end(), is_full)) {
                stopped.push_back(i);
            }
        }
        for (const std::size_t i : stopped) {
            frozen[i] = lowest;
            for (const LinkUse& use : sharers[i].uses) {
                room[use.link] -= *lowest * weight(sharers[i], use);
            }
        }
    }
    std::vector<Wide> levels;
    for (const auto& level : frozen) levels.push_back(*level);
    return levels;
}

/// The same activities started and ended in three of them, which share locally, in full, and as
/// they please.
class ComparedSharing {
  public:
    explicit ComparedSharing(const Rates& rates)
        : rates_(rates), local_(rates), full_(rates), either_(rates) {}

    void start(Sharer sharer) {
        const ActivityId id = start_in(full_, sharer);
        if (start_in(local_, sharer) != id || start_in(either_, sharer) != id) differ("ids differ");
        running_.push_back(id);
        sharers_.push_back(std::move(sharer));
        if (id.value == speeds_.size()) speeds_.push_back({});
        speeds_[id] = MaxMin::full_speed;
    }
    void end(std::size_t index) {
        for (MaxMin* each : {&full_, &local_, &either_}) each->end(running_[index]);
        std::swap(running_[index], running_.back());
        std::swap(sharers_[index], sharers_.back());
        running_.pop_back();
        sharers_.pop_back();
    }
    /// No activity may be faster alone than a link of its own where it starts.
    void set_rate(LinkId link, BytesPerSecond rate) {
        rates_[link] = rate;
        for (MaxMin* each : {&full_, &local_, &either_}) each->set_rate(link, rate);
    }
    /// Returns: where the three differ from each other or from the rounds to the letter, if so.
    std::string solve() {
        const std::span<const ActivityId> changed = full_.solve_in_full();
        if (!std::ranges::equal(changed, local_.solve_locally())) differ("other changes locally");
        if (!std::ranges::equal(changed, either_.solve())) differ("other changes either way");
        for (const ActivityId id : changed) {
            if (std::exchange(speeds_[id], full_.speed(id)) == full_.speed(id)) {
                differ(fmt::format("activity {} has not changed", id.value));
            }
        }
        const std::vector<MaxMin::Wide> right = fill(sharers_, rates_);
        for (std::size_t i = 0; i < running_.size(); ++i) {
            const ActivityId id = running_[i];
            if (full_.level(id) != right[i]) differ(fmt::format("activity {} in full", id.value));
            if (local_.level(id) != right[i]) differ(fmt::format("activity {} locally", id.value));
            if (either_.level(id) != right[i]) differ(fmt::format("activity {} either", id.value));
            if (speeds_[id] != full_.speed(id)) differ(fmt::format("a change of {}", id.value));
        }
        return std::exchange(differences_, {});
    }

    [[nodiscard]] const std::vector<Sharer>& sharers() const { return sharers_; }
    [[nodiscard]] MaxMin::Wide level(std::size_t index) const {
        return local_.level(running_[index]);
    }
    [[nodiscard]] std::int64_t speed(std::size_t index) const {
        return local_.speed(running_[index]);
    }
    [[nodiscard]] const Rates& rates() const { return rates_; }

  private:
    static ActivityId start_in(MaxMin& sharing, const Sharer& sharer) {
        return sharing.start(sharing.add_kind(sharer.alone, sharer.stream, sharer.uses));
    }
    void differ(const std::string& what) { differences_ += what + "; "; }

    Rates rates_;
    MaxMin local_, full_, either_;
    std::vector<Sharer> sharers_;
    std::vector<ActivityId> running_;
    IdVector<ActivityId, std::int64_t> speeds_;  // as the changes told
    std::string differences_;
};

}  // namespace fourfold
