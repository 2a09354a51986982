#pragma once

// Time of a collective against the number of ranks, by algorithm: nobody is in charge in a ring,
// and that is why it scales.

#include <cstdint>
#include <ostream>
#include <span>
#include <vector>

#include "results/collective_run.hpp"

namespace fourfold {

/// All combinations are asked for; ranks are innermost.
struct RingQuestion {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::vector<const Algorithm*> algorithms;
    std::vector<std::uint32_t> ranks;
    Bytes bytes{};
    Fabric network;
    LinkModel links = LinkModel::flows;
};

struct RingRow {
    std::string_view algorithm;
    std::uint32_t ranks = 1;
    Duration time{};
    std::optional<Duration> closed_form;  // see CollectiveRun
    Duration bound{};
    double bus_bandwidth = 0;
    std::uint64_t messages = 0;
};

Result<std::vector<RingRow>> ring_curves(const RingQuestion& question);

/// One line per row: algorithm,ranks,time_s,closed_form_s,bound_s,busbw_bytes_per_s,messages
void write_ring_csv(std::ostream& out, std::span<const RingRow> rows);

/// A gnuplot script that reads ring.csv in its own directory and makes ring.svg and ring.png there.
void write_ring_gnuplot(std::ostream& out, const RingQuestion& question,
                        std::span<const RingRow> rows);

}  // namespace fourfold
