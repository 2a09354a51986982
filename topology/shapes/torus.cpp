#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "topology/shapes/shape.hpp"

// As in Google's TPU v4 (Jouppi et al. 2023, sec. 2). Endpoint number x + d0 * (y + d1 * z) sits at
// (x, y, z). A dimension of 2 has one cable, not two, and a dimension of 1 none.

namespace fourfold {
namespace {

constexpr std::string_view picture = R"(
   |      |      |
-- e0 --- e1 --- e2 --      dimensions: [3, 3]; a line that leaves
   |      |      |          on one side comes back on the other
-- e3 --- e4 --- e5 --
   |      |      |
-- e6 --- e7 --- e8 --
   |      |      |)";

constexpr std::array<ShapeParameter, 1> takes{{
    {"dimensions", "1 to 3 sizes whose product is the number of endpoints",
     &ShapeParameters::dimensions},
}};

Result<void> check_dimensions(const std::vector<std::int64_t>& dimensions, std::size_t endpoints) {
    if (dimensions.empty() || dimensions.size() > 3) {
        return problem(
            "dimensions",
            fmt::format("a torus needs 1 to 3 sizes whose product is {}, for example [{}]",
                        endpoints, endpoints));
    }
    const auto total = static_cast<std::int64_t>(endpoints);
    std::int64_t product = 1;
    for (const std::int64_t size : dimensions) {
        if (size < 1) return problem("dimensions", fmt::format("size {} is not positive", size));
        product = size > total ? 0 : product * size;  // below 2^60: no overflow
        if (product == 0 || product > total) break;
    }
    if (product != total) {
        return problem("dimensions", fmt::format("{} is not the number of endpoints, {}",
                                                 fmt::join(dimensions, " x "), total));
    }
    return {};
}

Result<void> build(std::span<const VertexId> endpoints, const LinkSpec& spec,
                   const ShapeParameters& parameters, std::string_view /*prefix*/,
                   GraphDraft& draft) {
    if (auto fine = check_dimensions(parameters.dimensions, endpoints.size()); !fine) return fine;
    std::size_t stride = 1;
    for (const std::int64_t dimension : parameters.dimensions) {
        const auto size = static_cast<std::size_t>(dimension);
        for (std::size_t at = 0; at < endpoints.size(); ++at) {
            const std::size_t coordinate = at / stride % size;
            const bool last = coordinate + 1 == size;
            if (last && size <= 2) continue;
            const std::size_t next = last ? at - coordinate * stride : at + stride;
            draft.add_cable(endpoints[at], endpoints[next], spec);
        }
        stride *= size;
    }
    return {};
}

}  // namespace

extern const Shape torus_shape;
constinit const Shape torus_shape{
    .name = "torus",
    .summary = "a grid of 1 to 3 dimensions whose rows close to rings",
    .picture = picture,
    .parameters = takes,
    .direct = true,
    .blocks = nullptr,  // neighbours and others are not alike, and links in between are shared
    .build = build};

}  // namespace fourfold
