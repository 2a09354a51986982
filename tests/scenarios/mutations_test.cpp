#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "scenarios/catalog.hpp"
#include "scenarios/embedded.hpp"
#include "scenarios/scenario.hpp"

// The poor man's fuzzer, for every build: quickstarts with a few bytes cut, doubled or replaced.
// Whatever comes out, it is a scenario or a message, never a crash. tests/scenarios/fuzz_yaml.cpp
// is the real one.

namespace fourfold {
namespace {

constexpr std::uint64_t seed = 20'240'917;
constexpr int mutants = 3000;

class Mutator {
  public:
    std::string operator()(std::string text) {
        const std::size_t edits = 1 + below(4);
        for (std::size_t i = 0; i < edits && !text.empty(); ++i) edit(text);
        return text;
    }

  private:
    std::mt19937_64 random_{seed};

    // Not uniform_int_distribution, which differs between standard libraries.
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

    void edit(std::string& text) {
        static constexpr std::string_view pieces[] = {
            "{",    "}",     "[",      "]",       ":",        ": ",      ", ",          "- ",
            "\n",   "\n  ",  "\t",     "'",       "\"",       "|",       ">",           "&a",
            "*a",   "!x",    "#",      "---",     "<<: ",     "? ",      "-1",          "0",
            "1e99", "nan",   "~",      "\r",      "\xFF",     "\\",      "99999999999", "1048576",
            "TB",   " GB/s", "base: ", "graph: ", "\xC3\xA4", "%YAML 9", "perturb: [",  "torus"};
        const std::size_t at = below(text.size());
        const std::size_t length = 1 + below(12);
        switch (below(6)) {
            case 0:
                text.erase(at, length);
                break;
            case 1:
                text.insert(at, text.substr(at, length));
                break;
            case 2:
                text.insert(at, pieces[below(std::size(pieces))]);
                break;
            case 3:
                text.replace(at, length, pieces[below(std::size(pieces))]);
                break;
            case 4:
                text[at] = static_cast<char>(below(256));
                break;
            default: {
                // A line from elsewhere: keys in the wrong place, or twice.
                const std::size_t from = below(text.size());
                const std::size_t end = text.find('\n', from);
                text.insert(at, text.substr(from, end - from));
            }
        }
    }
};

}  // namespace

TEST_CASE("a mutated quickstart is a scenario or a message") {
    const auto catalog = embedded_catalog();
    REQUIRE(catalog);
    std::string original;
    for (const EmbeddedFile& file : embedded_files()) {
        if (file.path == "quickstart.yaml") original = file.text;
    }
    REQUIRE_FALSE(original.empty());
    Mutator mutate;
    int scenarios = 0;
    for (int i = 0; i < mutants; ++i) {
        CAPTURE(seed);
        CAPTURE(i);
        const std::string text = mutate(original);
        const auto scenario = parse_scenario(text, "mutant.yaml", {}, *catalog);
        if (scenario) {
            ++scenarios;
            continue;
        }
        REQUIRE_FALSE(scenario.error().empty());
        for (const Diagnostic& one : scenario.error()) {
            REQUIRE_FALSE(one.message.empty());
            REQUIRE(one.line >= 0);
            // Past the end by one: where something is missing.
            if (one.line > 0) {
                REQUIRE(one.column >= 1);
                REQUIRE(static_cast<std::size_t>(one.column) <= one.source_line.size() + 1);
            }
        }
        REQUIRE_FALSE(to_text(scenario.error()).empty());
    }
    // Half of the file is comments: many mutants are sound, and many are not.
    CHECK(scenarios > mutants / 20);
    CHECK(scenarios < mutants * 19 / 20);
}

}  // namespace fourfold
