#include "results/curves.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fourfold {
namespace {

constexpr std::int64_t picoseconds_per_second = Duration::period::den;
constexpr int not_found = 127;  // as the shell reports a command that it does not have

}  // namespace

std::string exact_seconds(Duration duration) {
    const std::int64_t count = duration.count();
    const bool negative = count < 0;
    const std::int64_t whole = count / picoseconds_per_second * (negative ? -1 : 1);
    const std::int64_t rest = count % picoseconds_per_second * (negative ? -1 : 1);
    std::string text = fmt::format("{}{}", negative ? "-" : "", whole);
    if (rest == 0) return text;
    text += fmt::format(".{:012}", rest);
    text.erase(text.find_last_not_of('0') + 1);
    return text;
}

std::string twelve_digits(double value) { return fmt::format("{:.12g}", value); }

std::string csv_field(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string quoted = "\"";
    for (const char letter : text) {
        if (letter == '"') quoted += '"';
        quoted += letter;
    }
    return quoted + '"';
}

std::string gnuplot_text(std::string_view text) {
    std::string quoted = "\"";
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') quoted += '\\';
        quoted += letter;
    }
    return quoted + '"';
}

Result<Drawing> run_gnuplot(const std::filesystem::path& directory, const std::string& script) {
    const std::string where = directory.string();
    const pid_t child = fork();
    if (child < 0) return problem("", fmt::format("cannot start gnuplot: {}", strerror(errno)));
    if (child == 0) {
        if (chdir(where.c_str()) != 0) _exit(1);
        // A picture is a file; gnuplot has nothing to add to our own output.
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
        execlp("gnuplot", "gnuplot", script.c_str(), static_cast<char*>(nullptr));
        _exit(errno == ENOENT ? not_found : 1);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return problem("", fmt::format("gnuplot is lost: {}", strerror(errno)));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == not_found) return Drawing::gnuplot_missing;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Drawing::done;
    return problem("", fmt::format("gnuplot could not draw {} in {} (status {})", script, where,
                                   WIFEXITED(status) ? WEXITSTATUS(status) : status));
}

}  // namespace fourfold
