#pragma once

// A timeline as Chrome JSON in the dialect of PyTorch's profiler (Kineto), for Perfetto and for
// tools that read real runs.
//
// One process per rank, one thread per stream. Every task is an X event of category "kernel"; a
// message is also a flow from its send to its receive. Collectives carry the arguments that real
// ones do, with "Seq" the number of the call in its process group.
//
// Times are text of whole nanoseconds ("12.345" microseconds), written from integers. Begin and end
// are both rounded down, so that what follows in a lane never overlaps; what is shorter than a
// nanosecond may get the length 0. The exact times are the arguments "begin_ps" and "end_ps".
// A slice includes waiting: a collective's part begins when its rank arrives, and "wait_ps" is what
// passed until the last one did. A receive's slice begins when the first byte could be there, but
// not before the one before it in its stream is over.

#include <cstdint>
#include <ostream>
#include <string>

#include "sim/timeline.hpp"
#include "topology/device.hpp"
#include "topology/graph.hpp"
#include "workloads/lower.hpp"

namespace fourfold {

struct TraceOptions {
    std::string name = {};              // the trace's
    Device device = {};                 // what all ranks run on
    std::int64_t activation_bytes = 2;  // of an element: what collectives are counted in
    std::int64_t gradient_bytes = 4;    // of an element on the data axis
};

/// Requires: `timeline` is of `lowered.program` on `graph`. Failure is the stream's state.
void write_trace(std::ostream& out, const Graph& graph, const Lowered& lowered,
                 const Timeline& timeline, const TraceOptions& options);

}  // namespace fourfold
