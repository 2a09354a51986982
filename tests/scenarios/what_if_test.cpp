#include "scenarios/what_if.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace fourfold {
namespace {

namespace fs = std::filesystem;

const fs::path base = fs::path(FOURFOLD_SOURCE_DIR) / "tests" / "golden" / "bad" / "base";

/// A folder that is gone after the test.
class Folder {
  public:
    explicit Folder(const std::string& name) : path_(fs::temp_directory_path() / name) {
        fs::remove_all(path_);
        fs::create_directories(path_);
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] fs::path write(const std::string& name, std::string_view text) const {
        const fs::path file = path_ / name;
        fs::create_directories(file.parent_path());
        std::ofstream(file) << text;
        return file;
    }
    [[nodiscard]] const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

Catalog embedded() {
    auto catalog = embedded_catalog();
    REQUIRE_MESSAGE(catalog, to_text(catalog.error()));
    return std::move(*catalog);
}

}  // namespace

TEST_CASE("a what-if file is its base and one scenario per entry") {
    const Folder folder("fourfold_what_if_test");
    fs::copy_file(base / "good.yaml", folder.path() / "good.yaml");
    const fs::path file = folder.write("changes.yaml", R"(
base: good.yaml
what_if:
  - {name: twice the batch, set: {batch.global: 32}}
  - name: slower
    set:
      perturb: [{slow_device: 1, factor: 2}]
      batch.micro: 2
)");
    const auto scenarios = load_scenarios(file, {{"batch.global", "64"}}, embedded());
    REQUIRE_MESSAGE(scenarios, to_text(scenarios.error()));
    REQUIRE(scenarios->size() == 3);
    CHECK((*scenarios)[0].name == "good");
    CHECK((*scenarios)[0].step.global_batch == 64);  // as set
    CHECK((*scenarios)[1].name == "twice the batch");
    CHECK((*scenarios)[1].step.global_batch == 32);  // the entry comes after
    CHECK((*scenarios)[2].name == "slower");
    CHECK((*scenarios)[2].step.global_batch == 64);
    CHECK((*scenarios)[2].step.micro_batch == 2);
    CHECK((*scenarios)[2].step.slow_devices.size() == 1);
}

TEST_CASE("a plain scenario is loaded as the only one") {
    const auto scenarios = load_scenarios(base / "good.yaml", {}, embedded());
    REQUIRE(scenarios);
    REQUIRE(scenarios->size() == 1);
    CHECK(scenarios->front().name == "good");
}

TEST_CASE("a file that is not there is named, with the nearest that is") {
    const auto scenarios = load_scenarios(base / "god.yaml", {}, embedded());
    REQUIRE_FALSE(scenarios);
    CHECK(to_text(scenarios.error()) ==
          (base / "god.yaml").string() + ": error: no such file; did you mean 'good.yaml'?\n");
    const auto folder = load_scenarios(base, {}, embedded());
    REQUIRE_FALSE(folder);
    CHECK(to_text(folder.error()) ==
          base.string() + ": error: a directory; name a YAML file in it\n");
}

TEST_CASE("an endless file is refused") {
    const auto scenarios = load_scenarios("/dev/zero", {}, embedded());
    REQUIRE_FALSE(scenarios);
    CHECK(to_text(scenarios.error()) ==
          "/dev/zero: error: larger than 8 MiB; is this a scenario?\n");
}

TEST_CASE("a directory adds to the catalog, and its names can be used") {
    const Folder folder("fourfold_catalog_test");
    (void)folder.write("devices/toy.yaml",
                       "{peak: 1 TFLOP/s, memory_bandwidth: 100 GB/s, memory: 8 GiB}");
    (void)folder.write("links/string.yaml", "{bandwidth: 1 GB/s, latency: 10 us}");
    (void)folder.write("models/tiny.yaml",
                       "{layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 100, sequence: 32}");
    const auto catalog = with_directory(embedded(), folder.path());
    REQUIRE_MESSAGE(catalog, to_text(catalog.error()));
    const auto scenario = parse_scenario(R"(
model: tiny
cluster:
  {device: toy, nodes: 1, devices_per_node: 2, node: {shape: switch, link: string}}
batch: {global: 2}
)",
                                         "test.yaml", {}, *catalog);
    REQUIRE_MESSAGE(scenario, to_text(scenario.error()));
    CHECK(scenario->step.device.peak == 1e12);
    CHECK(scenario->step.model.hidden == 64);
    CHECK(scenario->graph.links()[0].spec.bandwidth == 1_GBps);
}

TEST_CASE("a directory without a catalog, and a catalog with mistakes, are refused") {
    const Folder folder("fourfold_bad_catalog_test");
    const auto nothing = with_directory(embedded(), folder.path());
    REQUIRE_FALSE(nothing);
    CHECK(to_text(nothing.error()) ==
          folder.path().string() +
              ": error: no catalog; it needs .yaml files in devices/, links/, clusters/, "
              "frameworks/ or models/\n");
    const fs::path file =
        folder.write("models/odd.yaml",
                     "{layers: 2, hidden: 65, heads: 4, ffn: 256, vocab: 100, sequence: 32}\n");
    const auto wrong = with_directory(embedded(), folder.path());
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().size() == 1);
    CHECK(wrong.error()[0].file == file.string());
    CHECK(wrong.error()[0].line == 1);
}

}  // namespace fourfold
