#include "topology/shapes/shape.hpp"

// Two endpoints have one cable between them, not two.

namespace fourfold {
namespace {

constexpr std::string_view picture = R"(
e0 --- e1 --- e2 --- e3
|                    |
+--------------------+)";

Result<void> build(std::span<const VertexId> endpoints, const LinkSpec& spec,
                   const ShapeParameters& /*parameters*/, std::string_view /*prefix*/,
                   GraphDraft& draft) {
    const std::size_t count = endpoints.size();
    for (std::size_t i = 0; i + 1 < count; ++i) {
        draft.add_cable(endpoints[i], endpoints[i + 1], spec);
    }
    if (count > 2) draft.add_cable(endpoints[count - 1], endpoints[0], spec);
    return {};
}

}  // namespace

extern const Shape ring_shape;
constinit const Shape ring_shape{
    .name = "ring",
    .summary = "each endpoint joined to the next, the last to the first",
    .picture = picture,
    .parameters = {},
    .direct = true,
    .blocks = nullptr,  // neighbours and others are not alike, and links in between are shared
    .build = build};

}  // namespace fourfold
