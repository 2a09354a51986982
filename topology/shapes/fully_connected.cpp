#include <fmt/format.h>

#include "topology/shapes/shape.hpp"

// A cable of its own between every two endpoints, as between the devices of an MI300X node.

namespace fourfold {
namespace {

constexpr std::string_view picture = R"(
e0 --- e1
|  \ /  |
|  / \  |
e2 --- e3)";

constexpr std::size_t endpoints_max = 2048;  // four million links

Result<void> build(std::span<const VertexId> endpoints, const LinkSpec& spec,
                   const ShapeParameters& /*parameters*/, std::string_view /*prefix*/,
                   GraphDraft& draft) {
    if (endpoints.size() > endpoints_max) {
        return problem("shape",
                       fmt::format("a cable between every two of {} endpoints is too many; "
                                   "at most {} endpoints",
                                   endpoints.size(), endpoints_max));
    }
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
        for (std::size_t j = i + 1; j < endpoints.size(); ++j) {
            draft.add_cable(endpoints[i], endpoints[j], spec);
        }
    }
    return {};
}

Blocks blocks(std::uint32_t endpoints, std::uint32_t /*nodes*/,
              const ShapeParameters& /*parameters*/) {
    return {.sizes = {endpoints}};
}

}  // namespace

extern const Shape fully_connected_shape;
constinit const Shape fully_connected_shape{.name = "fully_connected",
                                            .summary = "a cable between every two endpoints",
                                            .picture = picture,
                                            .parameters = {},
                                            .direct = true,
                                            .blocks = blocks,
                                            .build = build};

}  // namespace fourfold
