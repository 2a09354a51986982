#pragma once

// A topology family: how given endpoints are joined by links and switches.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/graph.hpp"

namespace fourfold {

/// What a shape may be asked for beside its links. A shape that does not know a parameter refuses
/// it (`parameters` lists the names it takes).
struct ShapeParameters {
    std::vector<std::int64_t> dimensions{};  // torus: 1 to 3 sizes whose product is the endpoints
    double oversubscription = 1.0;           // fat_tree: ports of a leaf per uplink, >= 1
    std::int64_t leaf_ports = 32;            // fat_tree: endpoints per leaf
};

struct Shape {
    std::string_view name;
    std::string_view summary;
    std::span<const std::string_view> parameters;
    /// Whether endpoints are joined to each other (ring, torus, fully_connected) and not through
    /// switches. As a fabric, a direct shape joins the i-th devices of all nodes, for each i.
    bool direct;
    /// Endpoints in one aligned block, in which all are joined alike, as they are across blocks,
    /// and only an endpoint's own links can hold it up; 0: not so.
    std::uint32_t (*block)(std::uint32_t endpoints, const ShapeParameters& parameters);
    /// Joins `endpoints` with links of `spec`; switches are named `prefix` + "leaf0" and the like.
    /// A problem's `where` is the parameter's name. Called through `join`, which sees to the rest.
    Result<void> (*build)(std::span<const VertexId> endpoints, const LinkSpec& spec,
                          const ShapeParameters& parameters, std::string_view prefix,
                          GraphDraft& draft);
};

/// Builds `shape`, if `link` can be and no parameter is set that the shape does not take.
/// Requires: at least one endpoint.
Result<void> join(const Shape& shape, std::span<const VertexId> endpoints, const LinkSpec& link,
                  const ShapeParameters& parameters, std::string_view prefix, GraphDraft& draft);

std::span<const Shape* const> shapes();
/// A problem's text offers the closest name.
Result<const Shape*> find_shape(std::string_view name);

}  // namespace fourfold
