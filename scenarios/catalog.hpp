#pragma once

// Hardware and models by name. Each is a YAML file whose stem is its name: those in hardware/ and
// models/ are part of the program, a user's folder adds to them.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "scenarios/diagnostic.hpp"
#include "scenarios/framework_profile.hpp"
#include "topology/cluster.hpp"
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

/// A cluster of any number of nodes.
struct ClusterKind {
    Device device;
    std::int64_t devices_per_node = 0;
    std::optional<Fabric> node, fabric;
    TransportCosts node_costs, fabric_costs;
};

/// A number of the catalog and where it is from.
struct Constant {
    std::string entry;      // "devices/a100-sxm-80gb"
    std::string key;        // "gemm.cap"
    std::string value;      // as written
    std::string origin;     // sheet, kernel-fit, step-fit, typical or site
    std::string reference;  // what else `sources` says about it
};

struct Catalog {
    std::map<std::string, Device, std::less<>> devices;
    std::map<std::string, LinkKind, std::less<>> links;
    std::map<std::string, ClusterKind, std::less<>> clusters;
    std::map<std::string, FrameworkProfile, std::less<>> frameworks;
    std::map<std::string, Transformer, std::less<>> models;
    std::vector<Constant> constants;  // of all but the models, in the order of the files
};

/// A problem's text offers the closest name.
Result<Device> find_device(const Catalog& catalog, std::string_view name);
Result<LinkKind> find_link(const Catalog& catalog, std::string_view name);
Result<ClusterKind> find_cluster(const Catalog& catalog, std::string_view name);
Result<FrameworkProfile> find_framework(const Catalog& catalog, std::string_view name);
Result<Transformer> find_model(const Catalog& catalog, std::string_view name);

/// What is part of the program.
tl::expected<Catalog, Diagnostics> embedded_catalog();

/// Adds the YAML files in devices/, links/, clusters/, frameworks/ and models/ of `directory`; a
/// name that is already there is replaced.
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
