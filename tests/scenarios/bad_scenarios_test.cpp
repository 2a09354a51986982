#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "scenarios/catalog.hpp"
#include "scenarios/what_if.hpp"

// tests/golden/bad/ holds wrong scenarios, and beside each the whole text that a user gets. A line
// "# --set path=value" at the top of a scenario is a setting that comes with it. With
// FOURFOLD_UPDATE_GOLDEN=1 the texts are written anew: review them like code.

namespace fourfold {
namespace {

namespace fs = std::filesystem;

const fs::path folder = fs::path(FOURFOLD_SOURCE_DIR) / "tests" / "golden" / "bad";

std::string contents(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<Setting> settings_of(const std::string& text) {
    constexpr std::string_view mark = "# --set ";
    std::vector<Setting> settings;
    for (std::size_t at = 0; text.compare(at, mark.size(), mark) == 0;) {
        const std::size_t end = text.find('\n', at);
        const std::string setting = text.substr(at + mark.size(), end - at - mark.size());
        const std::size_t equals = setting.find('=');
        settings.push_back({setting.substr(0, equals), setting.substr(equals + 1)});
        at = end + 1;
    }
    return settings;
}

std::vector<fs::path> wrong_scenarios() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
}

/// Messages name files as the user typed them, and so do these, whatever the tests' folder.
class InFolder {
  public:
    InFolder() : before_(fs::current_path()) { fs::current_path(folder); }
    ~InFolder() { fs::current_path(before_); }
    InFolder(const InFolder&) = delete;
    InFolder& operator=(const InFolder&) = delete;

  private:
    fs::path before_;
};

}  // namespace

TEST_CASE("every wrong scenario gets the message that is written beside it") {
    const auto catalog = embedded_catalog();
    REQUIRE_MESSAGE(catalog, to_text(catalog.error()));
    const bool update = std::getenv("FOURFOLD_UPDATE_GOLDEN") != nullptr;
    const InFolder in_folder;
    const std::vector<fs::path> files = wrong_scenarios();
    CHECK(files.size() >= 40);
    std::set<std::string> messages;
    for (const fs::path& file : files) {
        CAPTURE(file.filename().string());
        const auto settings = settings_of(contents(file));
        const auto scenarios = load_scenarios(file.filename(), settings, *catalog);
        REQUIRE_FALSE(scenarios);
        const std::string message = to_text(scenarios.error());
        const fs::path golden = fs::path(file).replace_extension(".txt");
        if (update) std::ofstream(golden, std::ios::binary) << message;
        CHECK(message == contents(golden));
        CHECK_MESSAGE(messages.insert(message).second, "another scenario says the same");
    }
}

TEST_CASE("no message stands without its wrong scenario") {
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() != ".txt") continue;
        CAPTURE(entry.path().string());
        CHECK(fs::exists(fs::path(entry.path()).replace_extension(".yaml")));
    }
}

}  // namespace fourfold
