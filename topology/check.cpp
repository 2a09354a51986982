#include "topology/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace fourfold {

void check_failed(std::string_view expression, std::string_view file, int line,
                  std::string_view detail) {
    fmt::print(stderr, "{}:{}: internal error: {} does not hold{}{}\n", file, line, expression,
               detail.empty() ? "" : ": ", detail);
    std::abort();
}

}  // namespace fourfold
