#pragma once

// Hardware and models by name. Each is a YAML file whose stem is its name: those in hardware/ and
// models/ are part of the program, a user's folder adds to them.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "scenarios/diagnostic.hpp"
#include "topology/device.hpp"
#include "topology/graph.hpp"
#include "topology/result.hpp"
#include "workloads/training_step.hpp"
#include "workloads/transformer.hpp"

namespace fourfold {

class Fields;
class Report;

/// A kind of link, and how the software on it behaves.
struct LinkKind {
    std::string name;
    LinkSpec spec;
    TransportCosts costs;
};

struct Catalog {
    std::map<std::string, Device, std::less<>> devices;
    std::map<std::string, LinkKind, std::less<>> links;
    std::map<std::string, Transformer, std::less<>> models;
};

/// A problem's text offers the closest name.
Result<Device> find_device(const Catalog& catalog, std::string_view name);
Result<LinkKind> find_link(const Catalog& catalog, std::string_view name);
Result<Transformer> find_model(const Catalog& catalog, std::string_view name);

/// What is part of the program.
tl::expected<Catalog, Diagnostics> embedded_catalog();

/// Adds the YAML files in devices/, links/ and models/ of `directory`; a name that is already there
/// is replaced.
tl::expected<Catalog, Diagnostics> with_directory(Catalog catalog,
                                                  const std::filesystem::path& directory);

// The same mappings stand in scenarios. Each reads over what `into` already holds; without a base
// the keys that have no sensible default are required.

void read_device(Fields& fields, bool has_base, Device& into);
void read_model(Fields& fields, bool has_base, Transformer& into);
/// Bandwidth, latency, efficiency.
void read_link(Fields& fields, bool has_base, LinkSpec& into);
void read_costs(Fields& fields, TransportCosts& into);

}  // namespace fourfold
