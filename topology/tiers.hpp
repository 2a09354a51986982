#pragma once

// Tiers of switches, which trees are built from.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "topology/graph.hpp"

namespace fourfold {

/// Switches "leaf0", "leaf1" and so on, where `name` is "leaf".
std::vector<VertexId> add_switches(std::size_t count, std::string_view name, GraphDraft& draft);

/// A cable between each of `lower` and each of `upper`.
void join_all(std::span<const VertexId> lower, std::span<const VertexId> upper,
              const LinkSpec& spec, GraphDraft& draft);

/// Uplinks of a switch with `ports` below it: ports / oversubscription, rounded up.
/// Oversubscription leaves out uplinks and never slows them, so that a lone message runs at the
/// speed of its port.
std::size_t uplinks(std::size_t ports, double oversubscription);

// Problems are named by the parameter.
Result<void> check_ports(std::string_view parameter, std::string_view what, std::int64_t ports);
Result<void> check_oversubscription(std::string_view parameter, double oversubscription);

}  // namespace fourfold
