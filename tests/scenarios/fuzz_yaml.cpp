// libFuzzer on the reader of scenarios: whatever the text, the answer is a scenario or a message.
//
//   cmake -B build/fuzz -DCMAKE_CXX_COMPILER=clang++ -DFOURFOLD_FUZZ=ON \
//         -DFOURFOLD_SANITIZE=address,undefined,fuzzer-no-link
//   cmake --build build/fuzz --target fuzz_yaml
//   mkdir -p corpus && cp scenarios/quickstart.yaml tests/golden/bad/*.yaml corpus
//   build/fuzz/tests/fuzz_yaml -max_total_time=600 corpus

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "scenarios/catalog.hpp"
#include "scenarios/scenario.hpp"
#include "topology/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace fourfold;
    // Read once: the catalog is not what is fuzzed.
    static const auto catalog = embedded_catalog();
    FOURFOLD_CHECK(catalog.has_value());
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto scenario = parse_scenario(text, "fuzz.yaml", {}, *catalog);
    if (!scenario) FOURFOLD_CHECK(!to_text(scenario.error()).empty());
    return 0;
}
