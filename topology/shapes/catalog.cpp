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
    for (const Shape* other : catalog) {
        for (const ShapeParameter& each : other->parameters) {
            if (shape.takes(each.name) || !each.is_set(parameters)) continue;
            return problem(std::string(each.name),
                           fmt::format("shape '{}' does not take '{}'", shape.name, each.name));
        }
    }
    return {};
}

}  // namespace

bool ShapeParameter::is_set(const ShapeParameters& parameters) const {
    const ShapeParameters unset;
    return std::visit([&](auto member) { return parameters.*member != unset.*member; }, field);
}

bool Shape::takes(std::string_view parameter) const {
    return std::ranges::find(parameters, parameter, &ShapeParameter::name) != parameters.end();
}

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
