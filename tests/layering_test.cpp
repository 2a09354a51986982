// The rules of ARCHITECTURE.md that a tool can check: what may know what, and what lies where.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path root = FOURFOLD_SOURCE_DIR;

// Each may include those before it.
constexpr std::array<std::string_view, 5> rooms = {"topology", "sim", "workloads", "results",
                                                   "scenarios"};

std::string read(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    REQUIRE(stream);
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// All regular files below `folder`, by name.
std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<fs::path> sources_in(const fs::path& folder) {
    std::vector<fs::path> files = files_in(folder);
    std::erase_if(files, [](const fs::path& file) {
        return file.extension() != ".cpp" && file.extension() != ".hpp" &&
               file.extension() != ".def";
    });
    return files;
}

/// C++ with its comments blanked out; line ends stay.
std::string without_comments(std::string text) {
    enum class In { code, string, character, line_comment, comment } in = In::code;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char next = i + 1 < text.size() ? text[i + 1] : '\0';
        const bool escaped = text[i] == '\\';
        switch (in) {
            case In::code:
                if (text[i] == '/' && next == '/') in = In::line_comment;
                if (text[i] == '/' && next == '*') in = In::comment;
                if (text[i] == '"') in = In::string;
                // Not the separator of digits.
                if (text[i] == '\'' && (i == 0 || std::isxdigit(text[i - 1]) == 0)) {
                    in = In::character;
                }
                break;
            case In::string:
            case In::character:
                if (text[i] == (in == In::string ? '"' : '\'')) in = In::code;
                if (escaped) ++i;
                continue;
            case In::line_comment:
                if (text[i] == '\n') in = In::code;
                break;
            case In::comment:
                if (text[i] == '*' && next == '/') {
                    text[i + 1] = ' ';
                    in = In::code;
                    text[i++] = ' ';
                    continue;
                }
                break;
        }
        if ((in == In::line_comment || in == In::comment) && text[i] != '\n') text[i] = ' ';
    }
    return text;
}

/// Where `pattern` stands: "sim/program.hpp:12: found".
std::vector<std::string> matches(const fs::path& file, const std::string& text,
                                 const std::regex& pattern) {
    std::vector<std::string> found;
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end;
         ++match) {
        const auto line = 1 + std::count(text.begin(), text.begin() + match->position(), '\n');
        found.push_back(
            fmt::format("{}:{}: {}", file.lexically_relative(root).string(), line, match->str()));
    }
    return found;
}

void check_none_in_code(std::span<const std::string_view> folders, const std::regex& pattern) {
    for (const std::string_view folder : folders) {
        for (const fs::path& file : sources_in(root / folder)) {
            for (const std::string& place : matches(file, without_comments(read(file)), pattern)) {
                FAIL_CHECK(place);
            }
        }
    }
}

/// The names at the top level: what git knows, or in an unpacked archive all there is.
std::set<std::string> top_level() {
    std::set<std::string> names;
    if (fs::exists(root / ".git")) {
        const std::string command = fmt::format("git -C '{}' ls-files", root.string());
        const std::unique_ptr<FILE, int (*)(FILE*)> listing(popen(command.c_str(), "r"), pclose);
        REQUIRE(listing);
        std::string path;
        for (int c = 0; (c = std::fgetc(listing.get())) != EOF;) {
            if (c != '\n') {
                path += static_cast<char>(c);
                continue;
            }
            names.insert(path.substr(0, path.find('/')));
            path.clear();
        }
    }
    if (names.empty()) {
        for (const auto& entry : fs::directory_iterator(root)) {
            names.insert(entry.path().filename().string());
        }
        names.erase("build");
    }
    return names;
}

}  // namespace

TEST_CASE("comments are blanked out, code and strings stay") {
    CHECK(without_comments("a // b\nc") == "a     \nc");
    CHECK(without_comments("a /* b\n * c */ d") == "a     \n        d");
    CHECK(without_comments(R"(f("// \" /*", '"'); // g)") == R"(f("// \" /*", '"');     )");
    CHECK(without_comments("1'000 // '") == "1'000     ");
}

TEST_CASE("includes go only left: topology <- sim <- workloads <- results <- scenarios") {
    const std::regex include(R"re(#include "([^"/]*)/?[^"]*")re");
    for (std::size_t room = 0; room < rooms.size(); ++room) {
        for (const fs::path& file : sources_in(root / rooms[room])) {
            const std::string text = without_comments(read(file));
            for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end;
                 ++match) {
                const auto allowed = std::span(rooms).first(room + 1);
                const bool left =
                    std::find(allowed.begin(), allowed.end(), match->str(1)) != allowed.end();
                CHECK_MESSAGE(left, file.lexically_relative(root).string(), ": ", match->str());
            }
        }
    }
}

TEST_CASE("only scenarios know YAML and the command line") {
    check_none_in_code(std::span(rooms).first(4), std::regex(R"(#include <(yaml-cpp|CLI)/[^>]*>)"));
}

TEST_CASE("only main exits") {
    for (const std::string_view room : rooms) {
        for (const fs::path& file : sources_in(root / room)) {
            if (file == root / "scenarios" / "main.cpp") continue;
            const std::regex exits(R"(\b(quick_)?exit\s*\()");
            for (const std::string& place : matches(file, without_comments(read(file)), exits)) {
                FAIL_CHECK(place);
            }
        }
    }
}

TEST_CASE("sim has no word for what trains: layers, gradients, pipelines") {
    check_none_in_code(std::array<std::string_view, 1>{"sim"},
                       std::regex("layer|gradient|pipeline", std::regex::icase));
}

TEST_CASE("workloads know no events") {
    check_none_in_code(std::array<std::string_view, 1>{"workloads"},
                       std::regex(R"(\bEvent(Queue)?\b|sim/event_queue\.hpp)"));
}

TEST_CASE("no result depends on a clock or on an unseeded random number") {
    check_none_in_code(
        std::span(rooms).first(4),
        std::regex(R"(\b(system_clock|steady_clock|high_resolution_clock|random_device|s?rand\()"
                   R"(|std::rand\b))"));
}

TEST_CASE("every file of a catalog is in its catalog.def, and the other way round") {
    constexpr std::array<std::string_view, 3> catalogs = {
        "topology/shapes", "workloads/collectives", "workloads/schedules"};
    for (const std::string_view folder : catalogs) {
        CAPTURE(folder);
        std::set<std::string> files;
        for (const fs::path& file : files_in(root / folder)) {
            if (file.extension() == ".cpp" && file.filename() != "catalog.cpp") {
                files.insert(file.stem().string());
            }
        }
        std::set<std::string> entries;
        const std::string def = without_comments(read(root / folder / "catalog.def"));
        const std::regex entry(R"([A-Z]+\((\w+)\))");
        for (std::sregex_iterator match(def.begin(), def.end(), entry), end; match != end;
             ++match) {
            entries.insert(match->str(1));
        }
        CHECK_FALSE(entries.empty());
        for (const std::string& file : files) {
            CHECK_MESSAGE(entries.contains(file), file, ".cpp is not in catalog.def");
        }
        for (const std::string& name : entries) {
            CHECK_MESSAGE(files.contains(name), "catalog.def lists ", name, ", which is no file");
        }
    }
}

TEST_CASE("no file names a host or a path of one machine") {
    // Put together here, so that this file does not name them either.
    const std::string paths = "home|work|root|tmp|mnt|Users";
    const std::string hosts = R"(deb\.debian|registry\.npmjs|archive\.ubuntu)";
    const std::regex named("(^|[\\s\"'=(:])/(" + paths + ")/[\\w.]|\\b(" + hosts +
                           R"()\.\w+|\b(localhost|127\.0\.0\.1)\b)");
    std::vector<fs::path> files;
    for (const std::string& name : top_level()) {
        if (name == ".git" || name == ".cache") continue;
        const fs::path path = root / name;
        if (fs::is_directory(path)) {
            std::ranges::copy(files_in(path), std::back_inserter(files));
        } else if (fs::is_regular_file(path)) {
            files.push_back(path);
        }
    }
    REQUIRE_FALSE(files.empty());
    for (const fs::path& file : files) {
        if (file == root / "tests" / "layering_test.cpp") continue;
        const std::string text = read(file);
        if (text.find('\0') != std::string::npos) continue;
        for (const std::string& place : matches(file, text, named)) FAIL_CHECK(place);
    }
}

TEST_CASE("names of tests survive CMake's lists, and none is there twice in a binary") {
    const std::regex test("TEST_CASE\\(\"([^\"]*)\"");
    const fs::path tests = root / "tests";
    for (const auto& folder : fs::directory_iterator(tests)) {
        if (!folder.is_directory()) continue;
        std::set<std::string> names;
        for (const fs::path& file : sources_in(folder)) {
            const std::string text = read(file);
            for (std::sregex_iterator match(text.begin(), text.end(), test), end; match != end;
                 ++match) {
                const std::string name = match->str(1);
                CHECK_MESSAGE(name.find_first_of("[];\\$") == std::string::npos, name);
                CHECK_MESSAGE(names.insert(name).second, name);
            }
        }
    }
}

TEST_CASE("the top level holds the rooms, and the files that tools and readers look for there") {
    const std::set<std::string> allowed = {"CMakeLists.txt",  "sim",       "topology",
                                           "workloads",       "scenarios", "tests",
                                           "results",         "README.md", "LICENSE",
                                           "ARCHITECTURE.md", "setup.sh",  "CMakePresets.json"};
    for (const std::string& name : top_level()) {
        CHECK_MESSAGE((name.starts_with('.') || allowed.contains(name)), name);
    }
}
