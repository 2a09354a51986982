#pragma once

// Where nothing can come between them or hold them up, the kernels of a device and the collectives
// that they wait for take a time that is known beforehand. Such a chain is one task.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/program.hpp"
#include "workloads/operations.hpp"

namespace fourfold {

/// A kernel, or a collective that is alone on its links and whose members all come at once.
struct ChainPiece {
    bool is_kernel = true;
    Duration duration{};
    Duration not_before{};  // the host issues it, counted from the chain's begin
    // Collectives
    TransferId transfer{};
    Axis axis{};
    bool awaited = false;  // see Label
};

struct Chain {
    struct Kernel {
        Duration begin, end;  // counted from the chain's begin
        Duration before;      // compute of the kernels before it
    };
    struct Collectives {
        TransferId transfer;
        Axis axis;
        bool awaited;
        std::int64_t calls;
    };
    std::vector<Kernel> kernels;
    std::vector<Collectives> collectives;
    Duration compute{}, transfer{}, host{};  // sum to its length
    /// When the first kernel, or the host's first work for one, begins.
    Duration needed{};

    [[nodiscard]] Duration length() const { return compute + transfer + host; }
};

/// Requires: the last piece is a kernel.
Chain make_chain(std::span<const ChainPiece> pieces);

}  // namespace fourfold
