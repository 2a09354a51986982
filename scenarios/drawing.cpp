#include "scenarios/drawing.hpp"

#include <fmt/format.h>

#include <fstream>

#include "results/curves.hpp"
#include "scenarios/commands.hpp"

namespace fourfold {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& file) {
    return file.has_parent_path() ? file.parent_path() : ".";
}

}  // namespace

bool write_file(const std::filesystem::path& file,
                const std::function<void(std::ostream&)>& content) {
    std::error_code ignored;
    std::filesystem::create_directories(folder_of(file), ignored);
    std::ofstream out(file, std::ios::binary);
    if (out) content(out);
    out.close();
    if (!out) fmt::print(stderr, "{}: error: cannot be written\n", file.string());
    return static_cast<bool>(out);
}

int draw(const std::filesystem::path& script) {
    const std::string name = script.filename().string(), folder = folder_of(script).string();
    const Result<Drawing> drawing = run_gnuplot(folder, name);
    if (!drawing) {
        fmt::print(stderr, "{}: error: {}\n", script.string(), drawing.error().what);
        return failed;
    }
    if (*drawing == Drawing::gnuplot_missing) {
        fmt::print(stderr,
                   "{}: written, but not drawn: gnuplot is not installed (package gnuplot-nox); "
                   "later: cd {} && gnuplot {}\n",
                   script.string(), folder, name);
        return tool_missing;
    }
    return done;
}

}  // namespace fourfold
