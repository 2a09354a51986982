#include "topology/tiers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace fourfold {

std::vector<VertexId> add_switches(std::size_t count, std::string_view name, GraphDraft& draft) {
    std::vector<VertexId> switches;
    for (std::size_t i = 0; i < count; ++i) {
        switches.push_back(draft.add_switch(fmt::format("{}{}", name, i)));
    }
    return switches;
}

void join_all(std::span<const VertexId> lower, std::span<const VertexId> upper,
              const LinkSpec& spec, GraphDraft& draft) {
    for (const VertexId below : lower) {
        for (const VertexId above : upper) draft.add_cable(below, above, spec);
    }
}

std::size_t uplinks(std::size_t ports, double oversubscription) {
    const double exact = static_cast<double>(ports) / oversubscription;
    // Not one more because 33 / 1.1 is a little more than 30.
    return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(exact * (1 - 1e-12))));
}

Result<void> check_ports(std::string_view parameter, std::string_view what, std::int64_t ports) {
    if (ports >= 1) return {};
    return problem(std::string(parameter), fmt::format("a {}, not {}", what, ports));
}

Result<void> check_oversubscription(std::string_view parameter, double oversubscription) {
    if (std::isfinite(oversubscription) && oversubscription >= 1) return {};
    return problem(
        std::string(parameter),
        fmt::format("oversubscription {} is not a number of at least 1", oversubscription));
}

}  // namespace fourfold
