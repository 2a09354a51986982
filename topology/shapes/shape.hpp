#pragma once

// A topology family: how given endpoints are joined by links and switches.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "topology/graph.hpp"

namespace fourfold {

/// What shapes may be asked for beside their links. A shape refuses what it does not take.
struct ShapeParameters {
    std::vector<std::int64_t> dimensions{};
    double oversubscription = 1.0;
    std::int64_t leaf_ports = 32;
    std::int64_t levels = 2;
    std::int64_t pod_leaves = 32;
    double core_oversubscription = 1.0;
    bool spine = true;
    std::int64_t routers_per_group = 8;
    std::int64_t endpoints_per_router = 4;
    std::int64_t global_links_per_router = 4;
    std::int64_t sites = 2;
    LinkSpec wan{};
};

/// One parameter of a shape.
struct ShapeParameter {
    std::string_view name;  // as in YAML
    std::string_view meaning;
    std::variant<std::vector<std::int64_t> ShapeParameters::*, double ShapeParameters::*,
                 std::int64_t ShapeParameters::*, bool ShapeParameters::*,
                 LinkSpec ShapeParameters::*>
        field;

    [[nodiscard]] bool is_set(const ShapeParameters& parameters) const;
};

struct Shape {
    std::string_view name;
    std::string_view summary;
    std::string_view picture;  // lines, each after a newline
    std::span<const ShapeParameter> parameters;
    /// Whether endpoints are joined to each other (ring, torus, fully_connected) and not through
    /// switches. As a fabric, a direct shape joins the i-th devices of all nodes, for each i.
    bool direct;
    /// How alike endpoints are, as many in each of `nodes` nodes. No sizes, or nullptr, where they
    /// are not.
    Blocks (*blocks)(std::uint32_t endpoints, std::uint32_t nodes,
                     const ShapeParameters& parameters);
    /// Joins `endpoints` with links of `spec`; switches are named `prefix` + "leaf0" and the like.
    /// A problem's `where` is the parameter's name. Called through `join`, which sees to the rest.
    Result<void> (*build)(std::span<const VertexId> endpoints, const LinkSpec& spec,
                          const ShapeParameters& parameters, std::string_view prefix,
                          GraphDraft& draft);

    [[nodiscard]] bool takes(std::string_view parameter) const;
};

/// Builds `shape`, if `link` can be and no parameter is set that the shape does not take.
/// Requires: at least one endpoint.
Result<void> join(const Shape& shape, std::span<const VertexId> endpoints, const LinkSpec& link,
                  const ShapeParameters& parameters, std::string_view prefix, GraphDraft& draft);

std::span<const Shape* const> shapes();
/// A problem's text offers the closest name.
Result<const Shape*> find_shape(std::string_view name);

}  // namespace fourfold
