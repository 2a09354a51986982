#pragma once

// Checks for our own mistakes, on in every build. Bad input is never a check: it is a Problem.

#include <fmt/format.h>

#include <string_view>

namespace fourfold {

[[noreturn]] void check_failed(std::string_view expression, std::string_view file, int line,
                               std::string_view detail);

}  // namespace fourfold

#define FOURFOLD_CHECK(condition, ...)                               \
    do {                                                             \
        if (!(condition)) [[unlikely]] {                             \
            ::fourfold::check_failed(#condition, __FILE__, __LINE__, \
                                     ::fmt::format("" __VA_ARGS__)); \
        }                                                            \
    } while (false)

#ifdef NDEBUG
#define FOURFOLD_DCHECK(condition, ...) \
    do {                                \
    } while (false)
#else
#define FOURFOLD_DCHECK(condition, ...) FOURFOLD_CHECK(condition, __VA_ARGS__)
#endif
