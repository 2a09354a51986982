#include "topology/dot.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "tests/support/topology.hpp"

namespace fourfold {
namespace {

std::string dot_of(const Graph& graph) {
    std::ostringstream out;
    write_dot(out, graph);
    return out.str();
}

TEST_CASE("a drawing has a box for each device and a line for each cable") {
    CHECK(dot_of(shaped("switch", 2)) ==
          "digraph topology {\n"
          "    v0 [label=\"e0\", shape=box];\n"
          "    v1 [label=\"e1\", shape=box];\n"
          "  v2 [label=\"switch\"];\n"
          "  v0 -> v2 [label=\"25 GB/s\\n5 us\", dir=none];\n"
          "  v1 -> v2 [label=\"25 GB/s\\n5 us\", dir=none];\n"
          "}\n");
}

TEST_CASE("a drawing frames the devices of a node") {
    CHECK(dot_of(cluster_of(2, 2, "switch"))
              .starts_with("digraph topology {\n"
                           "  subgraph cluster_0 { label=\"node0\";\n"
                           "    v0 [label=\"node0.device0\", shape=box];\n"
                           "    v1 [label=\"node0.device1\", shape=box];\n"
                           "  }\n"
                           "  subgraph cluster_1 { label=\"node1\";\n"));
}

TEST_CASE("one-way and unequal links are arrows of their own, and names are quoted") {
    GraphDraft draft;
    const VertexId a = draft.add_device("a \"1\"", 0), b = draft.add_device("b\\n", 0);
    draft.add_link(a, b, port);
    draft.add_link(a, b, port);
    draft.add_link(b, a, port);
    draft.add_link(b, a, {1_GBps, 5_us});
    CHECK(dot_of(*seal(std::move(draft))) ==
          "digraph topology {\n"
          "    v0 [label=\"a \\\"1\\\"\", shape=box];\n"
          "    v1 [label=\"b\\\\n\", shape=box];\n"
          "  v0 -> v1 [label=\"25 GB/s\\n5 us\", dir=none];\n"
          "  v0 -> v1 [label=\"25 GB/s\\n5 us\"];\n"
          "  v1 -> v0 [label=\"1 GB/s\\n5 us\"];\n"
          "}\n");
}

}  // namespace
}  // namespace fourfold
