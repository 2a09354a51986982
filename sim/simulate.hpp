#pragma once

#include <span>
#include <string_view>

#include "sim/link_changes.hpp"
#include "sim/program.hpp"
#include "sim/timeline.hpp"
#include "topology/graph.hpp"

namespace fourfold {

enum class LinkModel : std::uint8_t {
    flows,     // fluid: transfers share links max-min fairly (flow_links.hpp)
    messages,  // whole messages, first come first served per directed link, cut-through
};

struct SimulateOptions {
    LinkModel links = LinkModel::flows;
    bool record_rates = false;              // for `audit`: the fluid model's speeds over time
    std::span<const LinkChange> changes{};  // failures: of whole messages only
    Bytes quantum{};            // messages: of which links serve those that wait in turns; 0: whole
    bool each_message = false;  // messages: calls that go alike are simulated again each time
};

/// Refuses a quantum that makes too many pieces, or none.
Result<void> check_quantum(Bytes quantum);

/// What to tell those who give flows a quantum.
inline constexpr std::string_view quantum_of_flows =
    "the quantum changes nothing: flows share links from byte to byte, messages wait";

/// Runs the program to its end. A problem if it cannot finish (the text is the cycle of who waits
/// for whom, or which failed link left whom without a route) or if a time leaves the range of
/// `duration_limit`.
Result<Timeline> simulate(const Graph& graph, const Program& program,
                          const SimulateOptions& options);

}  // namespace fourfold
