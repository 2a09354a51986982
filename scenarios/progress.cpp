#include "scenarios/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace fourfold {

Progress::Progress(std::size_t total)
    : total_(total),
      terminal_(isatty(STDERR_FILENO) == 1),
      started_(std::chrono::steady_clock::now()),
      last_line_(started_) {}

Progress::~Progress() { erase(); }

void Progress::erase() const {
    if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::next(std::string_view item) {
    ++begun_;
    if (total_ < 2) return;
    const auto now = std::chrono::steady_clock::now();
    const double elapsed = std::chrono::duration<double>(now - started_).count();
    const double left = begun_ > 1 ? elapsed / static_cast<double>(begun_ - 1) *
                                         static_cast<double>(total_ - begun_ + 1)
                                   : 0;
    if (terminal_) {
        fmt::print(stderr, "\r\x1b[K{}/{} {} ({:.0f} s left)", begun_, total_, item, left);
        std::fflush(stderr);
        drawn_ = true;
    } else if (now - last_line_ >= std::chrono::seconds(10)) {
        fmt::print(stderr, "{}/{} {} ({:.0f} s left)\n", begun_, total_, item, left);
        last_line_ = now;
    }
}

}  // namespace fourfold
