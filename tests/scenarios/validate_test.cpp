// `fourfold validate` as a user meets it.

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/program.hpp"

using namespace fourfold;
using nlohmann::json;

namespace {

// The quickstart with a name of its own and what `more` adds.
void write_scenario(const std::string& file, const std::string& name, const std::string& more) {
    std::string text = read_text(FOURFOLD_SOURCE_DIR "/scenarios/quickstart.yaml");
    const std::string old = "name: quickstart";
    text.replace(text.find(old), old.size(), "name: " + name);
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    write_text(file, text + more);
}

const std::string published = "published: {step_time: 1 s, source: a test}\n";
// More than the clock's 53 days: 24 layers, 8 micro-batches, 2 stages.
const std::string endless =
    "measured: {layer: {forward: 86400 s, input_gradient: 86400 s, weight_gradient: 86400 s}}\n";

// PATH without any program, while it lives.
class NoPrograms {
  public:
    NoPrograms() : path_(std::getenv("PATH")) { setenv("PATH", "/nowhere", 1); }
    ~NoPrograms() { setenv("PATH", path_.c_str(), 1); }
    NoPrograms(const NoPrograms&) = delete;
    NoPrograms& operator=(const NoPrograms&) = delete;

  private:
    std::string path_;
};

}  // namespace

TEST_CASE("validate compares all below a folder that was measured, by group or folder") {
    const Folder folder;
    write_scenario(folder.file("runs/b.yaml"), "second", published);
    write_scenario(folder.file("runs/a.yaml"), "first", published);
    write_scenario(folder.file("runs/deep/c.yaml"), "third", published);
    write_scenario(folder.file("runs/deep/d.yaml"), "fourth",
                   "published: {step_time: 1 s, source: a test, group: of its own}\n");
    write_scenario(folder.file("runs/d.yaml"), "not measured", "");
    write_text(folder.file("runs/e.yaml"),
               "base: a.yaml\nwhat_if: [{name: slower, set: {batch.micro: 2}}]\n");
    write_text(folder.file("runs/notes.txt"), "no scenario");

    // A file that is named twice counts once.
    const std::string files = folder.file("runs/b.yaml") + " " + folder.file("runs");
    const Finished run = run_program("validate --json " + files);
    CHECK(run.exit_code == 0);
    CHECK(run.err == "3 of 7 scenarios skipped: no published step time of their own\n");
    const json found = json::parse(run.out);
    REQUIRE(found["rows"].size() == 4);
    std::vector<std::string> names, groups;
    for (const json& row : found["rows"]) names.push_back(row["name"]);
    for (const json& group : found["groups"]) groups.push_back(group["group"]);
    CHECK(names == std::vector<std::string>{"second", "first", "third", "fourth"});
    CHECK(groups == std::vector<std::string>{"runs", "deep", "of its own"});

    const json alone = json::parse(run_program("run --json " + folder.file("runs/a.yaml")).out);
    const json& first = found["rows"][1];
    CHECK(first["file"] == folder.file("runs/a.yaml"));
    CHECK(first["predicted_s"] == alone["step_time_s"]);
    CHECK(first["error"] == alone["published_error"]);
    CHECK(first["measured_s"] == 1);
    CHECK(first["low_s"] < first["predicted_s"]);
    CHECK(first["high_s"] > first["predicted_s"]);
    CHECK(first["devices"] == 8);
    CHECK(first["tensor"] == 2);
    CHECK(first["pipeline"] == 2);
    CHECK(first["data"] == 2);
    CHECK(first["micro_batch"] == 1);
    CHECK(first["micro_batches"] == 8);
}

TEST_CASE("validate prints the same bytes whatever the number of jobs") {
    const Folder folder;
    for (const std::string micro : {"1", "2", "4"}) {
        write_scenario(folder.file("runs/" + micro + ".yaml"), "micro" + micro,
                       "published: {step_time: " + micro + " s, source: a test}\n");
    }
    const auto validate = [&](const std::string& jobs) {
        return run_program("validate --rows " + folder.file("runs") + " --jobs " + jobs +
                           " --csv " + folder.file(jobs + ".csv"));
    };
    const Finished one = validate("1"), five = validate("5");
    CHECK(one.exit_code == 0);
    CHECK(one.err.empty());
    CHECK(one.out.starts_with("  scenario  measured  predicted "));
    CHECK(one.out.find("\n  runs ") != std::string::npos);
    CHECK(one.out.find("\n  all ") != std::string::npos);
    CHECK(five.out == one.out);
    const std::string csv = read_text(folder.file("1.csv"));
    CHECK(std::count(csv.begin(), csv.end(), '\n') == 4);
    CHECK(csv.find("\nruns,micro2,") != std::string::npos);
    CHECK(read_text(folder.file("5.csv")) == csv);
}

TEST_CASE("validate leaves out files with mistakes, compares the others, and exits with 2") {
    const Folder folder;
    write_scenario(folder.file("runs/a.yaml"), "first", published);
    write_scenario(folder.file("runs/b.yaml"), "wrong", "publishd: 1 s\n");
    const Finished wrong = run_program("validate --json " + folder.file("runs"));
    CHECK(wrong.exit_code == 2);
    CHECK(wrong.err.starts_with(folder.file("runs/b.yaml:")));
    CHECK(wrong.err.ends_with("1 of 2 files left out: they have mistakes\n"));
    const json found = json::parse(wrong.out);
    REQUIRE(found["rows"].size() == 1);
    CHECK(found["rows"][0]["name"] == "first");
}

TEST_CASE("validate refuses what it cannot compare before anything runs") {
    const Folder folder;
    write_scenario(folder.file("runs/a.yaml"), "first", published);
    const Finished none = run_program("validate scenarios/quickstart.yaml");
    CHECK(none.exit_code == 2);
    CHECK(none.out.empty());
    CHECK(none.err ==
          "fourfold: error: no scenario has a published step time to compare with; add for example "
          "'published: {step_time: 24.8 s, source: its paper, table}'\n");
    const Finished plot = run_program("validate " + folder.file("runs") + " --plot x.png");
    CHECK(plot.exit_code == 2);
    CHECK(plot.err == "fourfold: error: --plot: 'x.png' does not end in .svg\n");
    const Finished missing = run_program("validate nope.yaml");
    CHECK(missing.exit_code == 2);
    CHECK(missing.err == "nope.yaml: error: no such file; check its name and folder\n");
}

TEST_CASE("a run that fails is reported, the others still count, and validate exits with 1") {
    const Folder folder;
    write_scenario(folder.file("runs/a.yaml"), "endless", published + endless);
    write_scenario(folder.file("runs/b.yaml"), "sound", published);
    const Finished run = run_program("validate --json " + folder.file("runs"));
    CHECK(run.exit_code == 1);
    CHECK(run.err == "endless: failed: the step takes longer than the clock can hold (1281 h)\n");
    const json found = json::parse(run.out);
    REQUIRE(found["rows"].size() == 1);
    CHECK(found["rows"][0]["name"] == "sound");

    const Finished alone = run_program("validate " + folder.file("runs/a.yaml"));
    CHECK(alone.exit_code == 1);
    CHECK(alone.out.empty());
}

TEST_CASE("validate draws through gnuplot, and without it still prints and writes all else") {
    const Folder folder;
    write_scenario(folder.file("runs/a.yaml"), "first", published);
    const std::string plot = folder.file("out/plot.svg"), script = folder.file("out/plot.gp");
    const std::string arguments = "validate " + folder.file("runs") + " --plot " + plot +
                                  " --csv " + folder.file("out/rows.csv");
    const Finished run = run_program(arguments);
    CHECK((run.exit_code == 0 || run.exit_code == 4));
    CHECK(std::filesystem::exists(plot) == (run.exit_code == 0));

    std::filesystem::remove_all(folder.file("out"));
    const NoPrograms no_programs;
    const Finished bare = run_program(arguments);
    CHECK(bare.exit_code == 4);
    CHECK(bare.err == script +
                          ": written, but not drawn: gnuplot is not installed (package "
                          "gnuplot-nox); later: cd " +
                          folder.file("out") + " && gnuplot plot.gp\n");
    CHECK(bare.out == run.out);
    CHECK(std::filesystem::exists(script));
    CHECK(std::filesystem::exists(folder.file("out/rows.csv")));
}
