#include "workloads/chain.hpp"

#include <algorithm>

#include "topology/check.hpp"

namespace fourfold {

Chain make_chain(std::span<const ChainPiece> pieces) {
    FOURFOLD_CHECK(!pieces.empty() && pieces.back().is_kernel);
    Chain chain;
    std::vector<Duration> begin(pieces.size());
    Duration end{};        // of the piece before
    Duration explained{};  // end of the kernel before
    bool held = false;     // the host has been waited for
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const ChainPiece& piece = pieces[i];
        begin[i] = std::max(end, piece.not_before);
        held = held || piece.not_before > Duration::zero();
        end = begin[i] + piece.duration;
        if (!piece.is_kernel) continue;

        if (chain.kernels.empty()) chain.needed = held ? Duration::zero() : begin[i];
        // What the kernel waited for, from its begin back to the kernel before: the collective in
        // front of it, or the host, and then nothing but the host.
        Duration until = begin[i];
        for (std::size_t j = i; until > explained; --j) {
            const Duration before =
                j == 0 ? Duration::zero() : begin[j - 1] + pieces[j - 1].duration;
            const Duration issued = pieces[j].not_before;
            if (issued > Duration::zero() && issued >= before) {
                chain.host += until - explained;
                break;
            }
            FOURFOLD_CHECK(j > 0);
            chain.transfer += until - std::max(begin[j - 1], explained);
            until = begin[j - 1];
        }
        chain.kernels.push_back({begin[i], end, chain.compute});
        chain.compute += piece.duration;
        explained = end;
    }
    for (const ChainPiece& piece : pieces) {
        if (piece.is_kernel) continue;
        const auto known = std::ranges::find_if(chain.collectives, [&](const auto& other) {
            return other.transfer == piece.transfer && other.axis == piece.axis &&
                   other.awaited == piece.awaited;
        });
        if (known != chain.collectives.end()) {
            ++known->calls;
        } else {
            chain.collectives.push_back({piece.transfer, piece.axis, piece.awaited, 1});
        }
    }
    return chain;
}

}  // namespace fourfold
