#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace fourfold {

/// Progress on standard error: a line that is redrawn on a terminal, a plain line every ten seconds
/// elsewhere, nothing for short work.
class Progress {
  public:
    explicit Progress(std::size_t total);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// The next item begins.
    void next(std::string_view item);

  private:
    void erase() const;
    std::size_t total_, begun_ = 0;
    bool terminal_, drawn_ = false;
    std::chrono::steady_clock::time_point started_, last_line_;
};

}  // namespace fourfold
