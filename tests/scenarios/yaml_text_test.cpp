#include "scenarios/yaml_text.hpp"

#include <doctest/doctest.h>

#include <string>

#include "scenarios/embedded.hpp"

namespace fourfold {
namespace {

YamlNode tree_of(std::string_view text) {
    Report report;
    const std::uint32_t source = report.add_source("t.yaml", text);
    auto tree = parse_yaml({source, 0, 0}, report);
    REQUIRE_MESSAGE(report.errors() == 0, to_text(report.diagnostics()));
    REQUIRE(tree.has_value());
    return std::move(*tree);
}

bool same(const YamlNode& a, const YamlNode& b) {
    if (a.kind != b.kind || a.quoted != b.quoted || a.text != b.text) return false;
    if (a.keys.size() != b.keys.size() || a.values.size() != b.values.size()) return false;
    for (std::size_t i = 0; i < a.keys.size(); ++i) {
        if (!same(a.keys[i], b.keys[i])) return false;
    }
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        if (!same(a.values[i], b.values[i])) return false;
    }
    return true;
}

}  // namespace

TEST_CASE("Every file of the catalog is read back as it was written") {
    for (const EmbeddedFile& file : embedded_files()) {
        CAPTURE(file.path);
        const YamlNode tree = tree_of(file.text);
        CHECK(same(tree, tree_of(yaml_text(tree))));
    }
}

TEST_CASE("Texts of any kind come back: quotes, line ends, spaces, long ones, lists, mappings") {
    const std::string text =
        "plain: 312 TFLOP/s\n"
        "text: \"a \\\"quote\\\", a \\\\ and a: colon\"\n"
        "lines: \"one\\n two\\t\"\n"
        "spaces: \"  two  and then more than fits in a line, so that one would like to break it "
        "somewhere\"\n"
        "list: [1, \"a, b\", [c, {d: e}]]\n"
        "table:\n"
        "  - [1, any, 3 us]\n"
        "  - []\n"
        "nothing:\n"
        "inside:\n"
        "  deeper:\n"
        "    key.with.dots: 3 us\n";
    CHECK(yaml_text(tree_of(text)) == text);
    CHECK(yaml_text(
              tree_of("long: \"" + std::string(60, 'a') + " " + std::string(60, 'b') + " c\"")) ==
          "long: >-\n  " + std::string(60, 'a') + "\n  " + std::string(60, 'b') + " c\n");
}

TEST_CASE("Values are set, made and taken out") {
    YamlNode tree = tree_of("a: 1\nb: {c: 2}\nd: 3\n");
    set_scalar(tree, "a", "5 us", Scalar::plain);
    set_scalar(submapping(tree, "b"), "e", "a text", Scalar::text);
    set_scalar(submapping(tree, "f"), "g", "7", Scalar::plain);
    erase_key(tree, "d");
    erase_key(tree, "absent");
    CHECK(yaml_text(tree) == "a: 5 us\nb:\n  c: 2\n  e: \"a text\"\nf:\n  g: 7\n");
}

}  // namespace fourfold
