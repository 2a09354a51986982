#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "topology/check.hpp"
#include "topology/closest.hpp"
#include "topology/shapes/shape.hpp"

namespace fourfold {

#define SHAPE(name) extern const Shape name##_shape;
#include "topology/shapes/catalog.def"
#undef SHAPE

namespace {

constexpr std::array catalog{
#define SHAPE(name) &name##_shape,
#include "topology/shapes/catalog.def"
#undef SHAPE
};

/// A parameter that was set although the shape does not take it.
Result<void> check_parameters(const Shape& shape, const ShapeParameters& parameters) {
    const ShapeParameters unset;
    const std::array<std::pair<std::string_view, bool>, 3> set{{
        {"dimensions", parameters.dimensions != unset.dimensions},
        {"oversubscription", parameters.oversubscription != unset.oversubscription},
        {"leaf_ports", parameters.leaf_ports != unset.leaf_ports},
    }};
    for (const auto& [name, is_set] : set) {
        const bool taken = std::ranges::find(shape.parameters, name) != shape.parameters.end();
        if (is_set && !taken) {
            return problem(std::string(name),
                           fmt::format("shape '{}' does not take '{}'", shape.name, name));
        }
    }
    return {};
}

}  // namespace

std::span<const Shape* const> shapes() { return catalog; }

Result<const Shape*> find_shape(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Shape* shape : shapes()) {
        if (shape->name == name) return shape;
        names.push_back(shape->name);
    }
    return problem("", unknown("shape", name, names));
}

Result<void> join(const Shape& shape, std::span<const VertexId> endpoints, const LinkSpec& link,
                  const ShapeParameters& parameters, std::string_view prefix, GraphDraft& draft) {
    FOURFOLD_CHECK(!endpoints.empty());
    if (auto fine = check(link); !fine) return fine;
    if (auto fine = check_parameters(shape, parameters); !fine) return fine;
    return shape.build(endpoints, link, parameters, prefix, draft);
}

}  // namespace fourfold
