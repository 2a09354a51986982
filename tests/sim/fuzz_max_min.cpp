// libFuzzer on the sharing of links: whatever comes and goes, sharing from the links that changed
// equals sharing from nothing, and both the rounds to the letter, to the bit.
//
//   cmake -B build/fuzz -DCMAKE_CXX_COMPILER=clang++ -DFOURFOLD_FUZZ=ON \
//         -DFOURFOLD_SANITIZE=address,undefined,fuzzer-no-link \
//         -DCMAKE_BUILD_TYPE=Checked -DCMAKE_CXX_FLAGS_CHECKED=-O1
//   cmake --build build/fuzz --target fuzz_max_min
//   mkdir -p corpus && build/fuzz/tests/fuzz_max_min -max_total_time=600 corpus

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "tests/support/sharing.hpp"
#include "topology/check.hpp"

namespace fourfold {
namespace {

/// Zeros when they are used up.
class FuzzBytes {
  public:
    explicit FuzzBytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    [[nodiscard]] bool empty() const { return bytes_.empty(); }
    std::uint8_t next() {
        if (bytes_.empty()) return 0;
        const std::uint8_t byte = bytes_.front();
        bytes_ = bytes_.subspan(1);
        return byte;
    }
    /// 1, 2, 3 and other numbers of few digits, or any of `digits` base-256 digits.
    std::int64_t number(int digits) {
        std::int64_t number = next();
        if (number % 2 == 0) return number / 2 + 1;
        for (int i = 1; i < digits; ++i) number = number << 8 | next();
        return number;
    }

  private:
    std::span<const std::uint8_t> bytes_;
};

Sharer sharer_of(FuzzBytes& bytes, const Rates& rates) {
    Sharer made;
    made.stream = Bytes{bytes.number(4)};
    const std::uint8_t shape = bytes.next();
    for (int i = shape % 8; i >= 0; --i) {
        const LinkId link{static_cast<std::uint32_t>(bytes.next() % rates.size())};
        add_use(made, link, shape & 8 ? Bytes{bytes.number(4)} : made.stream, rates);
    }
    if (shape & 16) made.alone += Duration(bytes.number(5));
    return made;
}

// Links that are fast enough for no transfer to take longer than the clock can hold.
void play(FuzzBytes bytes) {
    Rates rates;
    for (int i = bytes.next() % 16; i >= 0; --i) rates.push_back({10'000 + bytes.number(5)});
    ComparedSharing sharing(rates);
    while (!bytes.empty()) {
        const std::uint8_t what = bytes.next();
        const std::size_t running = sharing.sharers().size();
        if (what % 4 == 0 && running > 0) {
            sharing.end(bytes.next() % running);
        } else if (running < 32) {
            sharing.start(sharer_of(bytes, rates));
        }
        if (what % 8 >= 6) continue;  // several at one instant
        const std::string difference = sharing.solve();
        FOURFOLD_CHECK(difference.empty(), "{}", difference);
    }
}

}  // namespace
}  // namespace fourfold

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fourfold::play(fourfold::FuzzBytes({data, size}));
    return 0;
}
