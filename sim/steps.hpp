#pragma once

// A collective algorithm, as the simulator sees it: for each member an ordered list of steps,
// generated one at a time and never stored.
//
// Two paces:
// - eager: before its k-th step, a member waits until its `inbox` holds `arrived` messages, and
// then
//   queues its send. Sends do not block.
// - rendezvous: step k is round k of every member. A message of round k starts when both its ends
//   have reached round k; a member goes on to round k + 1 when its send has been delivered and its
//   message (`from`) has arrived.

#include <cstdint>
#include <vector>

#include "topology/units.hpp"

namespace fourfold {

enum class Pace : std::uint8_t { eager, rendezvous };

/// What the steps of one call are computed from. Made by the algorithm, read only by it.
struct StepPlan {
    std::uint32_t members = 1;
    std::uint32_t per_node = 1;  // members that share a node, where all nodes have as many; else 1
    std::uint32_t root = 0;
    std::uint32_t channels = 1;  // lists that a member works through side by side
    Bytes bytes{};               // as the collective's kind defines it
    std::uint32_t chunks = 1;
    std::vector<std::uint32_t> table;
};

struct Step {
    static constexpr std::uint32_t nobody = ~std::uint32_t{0};
    std::uint32_t to = nobody;    // member that this step sends to
    std::uint32_t from = nobody;  // rendezvous: member whose message this step receives
    Bytes bytes{};                // sent
    std::uint8_t inbox = 0;       // eager: the inbox (0 or 1) of `to` that the message lands in
    std::uint8_t wait_inbox = 0;  // eager: wait for `arrived` messages in this inbox of mine
    std::uint32_t arrived = 0;
};

/// All that a member sends to one other in one channel.
struct Sent {
    std::uint32_t to;
    std::uint32_t messages;
    Bytes bytes;
};

struct StepRule {
    Pace pace;
    /// How many steps this member has in this channel.
    std::uint32_t (*count)(const StepPlan& plan, std::uint32_t channel, std::uint32_t member);
    /// Requires: k < count.
    Step (*step)(const StepPlan& plan, std::uint32_t channel, std::uint32_t member,
                 std::uint32_t k);
    /// The sum of the member's steps in this channel, if all of them send to the same other; where
    /// this is not given, the steps are walked.
    Sent (*sum)(const StepPlan& plan, std::uint32_t channel, std::uint32_t member) = nullptr;
};

}  // namespace fourfold
