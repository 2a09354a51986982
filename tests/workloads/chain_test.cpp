#include "workloads/chain.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace fourfold {
namespace {

ChainPiece kernel(Duration duration, Duration not_before = {}) {
    return {.is_kernel = true, .duration = duration, .not_before = not_before};
}
ChainPiece call(Duration duration, std::uint32_t transfer, Duration not_before = {}) {
    return {.is_kernel = false,
            .duration = duration,
            .not_before = not_before,
            .transfer = {transfer},
            .axis = Axis::tensor,
            .awaited = true};
}

}  // namespace

TEST_CASE("a chain is as long as its pieces where the host is ahead of the device") {
    const std::vector<ChainPiece> pieces{kernel(10_us), call(3_us, 7), kernel(20_us),
                                         call(4_us, 8), call(3_us, 7), kernel(5_us)};
    const Chain chain = make_chain(pieces);
    CHECK(chain.length() == 45_us);
    CHECK(chain.compute == 35_us);
    CHECK(chain.transfer == 10_us);
    CHECK(chain.host == 0_us);
    CHECK(chain.needed == 0_us);
    REQUIRE(chain.kernels.size() == 3);
    CHECK(chain.kernels[1].begin == 13_us);
    CHECK(chain.kernels[1].end == 33_us);
    CHECK(chain.kernels[2].before == 30_us);
    REQUIRE(chain.collectives.size() == 2);
    CHECK(chain.collectives[0].transfer == TransferId{7});
    CHECK(chain.collectives[0].calls == 2);
    CHECK(chain.collectives[1].calls == 1);
}

TEST_CASE("a collective in front of the first kernel belongs to the chain") {
    const Chain chain = make_chain(std::vector{call(3_us, 7), kernel(10_us)});
    CHECK(chain.transfer == 3_us);
    CHECK(chain.needed == 3_us);
    CHECK(chain.kernels.front().begin == 3_us);
}

TEST_CASE("a kernel that the host has not issued waits for it") {
    // The host issues the second kernel 25 us after the begin, when 10 + 3 us have passed; all the
    // time since the first kernel is the host's, for it works without a pause.
    const Chain chain = make_chain(std::vector{kernel(10_us), call(3_us, 7), kernel(20_us, 25_us)});
    CHECK(chain.host == 15_us);
    CHECK(chain.transfer == 0_us);
    CHECK(chain.length() == 45_us);
    // Issued in time, the same kernel waits for the collective.
    const Chain soon = make_chain(std::vector{kernel(10_us), call(3_us, 7), kernel(20_us, 12_us)});
    CHECK(soon.host == 0_us);
    CHECK(soon.transfer == 3_us);
    // A collective that is itself held: first the host, then the transfer.
    const Chain late =
        make_chain(std::vector{kernel(10_us), call(3_us, 7, 14_us), kernel(20_us, 15_us)});
    CHECK(late.host == 4_us);
    CHECK(late.transfer == 3_us);
    // Before the first kernel nothing but the host is waited for.
    const Chain begin = make_chain(std::vector{kernel(10_us, 6_us), kernel(1_us)});
    CHECK(begin.host == 6_us);
    CHECK(begin.needed == 0_us);
}

}  // namespace fourfold
