#include "topology/closest.hpp"

#include <doctest/doctest.h>

#include <array>

namespace fourfold {
namespace {

constexpr std::array<std::string_view, 4> names{"ring", "torus", "fat_tree", "switch"};

TEST_CASE("the closest name is one swap, insertion, deletion or replacement away") {
    CHECK(closest("rign", names) == "ring");
    CHECK(closest("rin", names) == "ring");
    CHECK(closest("rings", names) == "ring");
    CHECK(closest("rang", names) == "ring");
    CHECK(closest("fattree", names) == "fat_tree");
}

TEST_CASE("a name that shares too little is no suggestion") {
    CHECK(!closest("dragonfly", names));
    CHECK(!closest("", names));
    CHECK(!closest("ring", {}));
}

TEST_CASE("of equally close names the first is taken") {
    constexpr std::array<std::string_view, 2> twins{"aac", "aab"};
    CHECK(closest("aa", twins) == "aac");
}

TEST_CASE("an unknown name is told the closest, or all") {
    CHECK(unknown("topology", "rign", names) == "unknown topology 'rign'; did you mean 'ring'?");
    CHECK(unknown("topology", "dragonfly", names) ==
          "unknown topology 'dragonfly'; known: ring, torus, fat_tree, switch");
}

}  // namespace
}  // namespace fourfold
