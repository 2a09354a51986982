#pragma once

// What a collective algorithm must supply: its steps, its time on idle links, and its closed form.
//
// Bytes of a call, S (the convention of nccl-tests and of formulas for bus bandwidth): all-reduce:
// the buffer; all-gather: the gathered output; reduce-scatter: the unreduced input; all-to-all: the
// buffer of one member; broadcast: the buffer. Pieces are padded to ceil(S / n).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/program.hpp"
#include "sim/steps.hpp"
#include "topology/result.hpp"
#include "topology/routes.hpp"

namespace fourfold {

enum class CollectiveKind : std::uint8_t {
    all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    broadcast
};

/// "all_reduce"
std::string_view name_of(CollectiveKind kind);
Result<CollectiveKind> find_collective_kind(std::string_view name);
std::span<const std::string_view> collective_kinds();

struct CollectiveCall {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::uint32_t members = 1;
    std::uint32_t per_node = 1;  // members in each node, where all nodes have as many; else 1
    Bytes bytes{};
    std::uint32_t root = 0;
};

/// Every pair of members joined alike: one port of `rate` per member and direction, and `latency`
/// between any two (a switch; for a ring also equal edges with links of their own).
struct EqualLinks {
    BytesPerSecond rate{};
    Duration latency{};
};

/// The time of one message between two members on idle links: `serialise` (on its slowest link) and
/// the latency after it.
struct Hop {
    Duration serialise{}, latency{};
};
/// Asks for a hop; a borrowed callable.
using HopFinder = const std::function<Hop(std::uint32_t from, std::uint32_t to, Bytes bytes)>&;

struct Algorithm {
    std::string_view name;
    std::string_view summary;
    StepRule rule;
    /// Why this algorithm does not do this kind, if it does not.
    std::optional<std::string> (*refuse)(const CollectiveCall& call);
    StepPlan (*plan)(const CollectiveCall& call);
    /// The longest path through the steps on idle links of any speed: what one call takes when it
    /// is alone (without its start-up time), as long as no two of its messages share a link.
    Duration (*alone)(const CollectiveCall& call, HopFinder hop);
    /// The same on equal links, as the formula of the literature.
    Duration (*closed_form)(const CollectiveCall& call, const EqualLinks& links);
};

std::span<const Algorithm* const> algorithms();
Result<const Algorithm*> find_algorithm(std::string_view name);

/// As NCCL chooses: the faster of ring and tree by their times alone; ring where tree does not
/// apply, direct sends for all-to-all.
const Algorithm& choose_algorithm(const CollectiveCall& call, HopFinder hop);

/// No algorithm can be faster than this on equal links: the bytes that a member must send or
/// receive through its port, and one latency.
Duration bandwidth_bound(const CollectiveCall& call, const EqualLinks& links);

/// nccl-tests: bus bandwidth is algorithm bandwidth (bytes / time) times this.
double bus_factor(CollectiveKind kind, std::uint32_t members);

}  // namespace fourfold
