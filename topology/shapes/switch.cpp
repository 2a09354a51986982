#include <fmt/format.h>

#include "topology/shapes/shape.hpp"

// One switch that never blocks: a transfer is limited by the two ports that it uses, as among the
// NVSwitches of an NVIDIA DGX (several chips there, one switch to the devices).

namespace fourfold {
namespace {

constexpr std::string_view picture = R"(
      switch
    /  |  |  \
  e0  e1  e2  e3)";

Result<void> build(std::span<const VertexId> endpoints, const LinkSpec& spec,
                   const ShapeParameters& /*parameters*/, std::string_view prefix,
                   GraphDraft& draft) {
    const VertexId centre = draft.add_switch(fmt::format("{}switch", prefix));
    for (const VertexId endpoint : endpoints) draft.add_cable(endpoint, centre, spec);
    return {};
}

Blocks blocks(std::uint32_t endpoints, std::uint32_t /*nodes*/,
              const ShapeParameters& /*parameters*/) {
    return {.sizes = {endpoints}};
}

}  // namespace

extern const Shape switch_shape;
constinit const Shape switch_shape{.name = "switch",
                                   .summary = "one non-blocking switch that joins all endpoints",
                                   .picture = picture,
                                   .parameters = {},
                                   .direct = false,
                                   .blocks = blocks,
                                   .build = build};

}  // namespace fourfold
