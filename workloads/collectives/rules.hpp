#pragma once

// What several algorithms share.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/steps.hpp"
#include "topology/units.hpp"
#include "workloads/collectives/collective.hpp"

namespace fourfold {

/// Why no algorithm at all does this call: no members, a root that is none of them, negative bytes.
std::optional<std::string> refuse_call(const CollectiveCall& call);

// A plan's table begins with the kind and with the bytes of a piece, so that a step costs no
// division.
inline constexpr std::size_t plan_head = 3;
StepPlan plan_of(const CollectiveCall& call, Bytes piece);
inline CollectiveKind kind_of(const StepPlan& plan) {
    return static_cast<CollectiveKind>(plan.table[0]);
}
inline Bytes piece_of(const StepPlan& plan) {
    return {static_cast<std::int64_t>(std::uint64_t{plan.table[2]} << 32 | plan.table[1])};
}

/// Both saturate at `duration_limit`. Requires: arguments from 0 to `duration_limit`.
constexpr Duration add(Duration a, Duration b) {
    return b > duration_limit - a ? duration_limit : a + b;
}
constexpr Duration repeat(Duration duration, std::int64_t times) {
    const bool fits = times == 0 || duration <= duration_limit / times;
    return fits ? duration * times : duration_limit;
}

/// The member `distance` after this one. Requires: both less than `members`.
constexpr std::uint32_t member_after(std::uint32_t member, std::uint32_t distance,
                                     std::uint32_t members) {
    const std::uint32_t left = members - member;
    return distance < left ? member + distance : distance - left;
}

/// The longest path through the rounds of a rendezvous rule with one channel, on idle links.
Duration rounds_path(const StepRule& rule, const StepPlan& plan, HopFinder hop);

/// One phase in which a member's sends queue at its port and its receives at its port.
class PortPhase {
  public:
    explicit PortPhase(std::uint32_t members) : sending_(members), receiving_(members) {}
    void message(std::uint32_t from, std::uint32_t to, Hop hop);
    /// Until the last message has arrived: the busiest port, then the longest latency.
    [[nodiscard]] Duration time() const;

  private:
    std::vector<Duration> sending_, receiving_;
    Duration latency_{};
};

/// The same on equal links, for a port that serves `messages` of `bytes`.
inline Duration port_phase(std::uint32_t messages, Bytes bytes, const EqualLinks& links) {
    return add(repeat(bytes / links.rate, messages), links.latency);
}

}  // namespace fourfold
