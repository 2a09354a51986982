#pragma once

// A value, or the reason why there is none.

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace fourfold {

/// What is wrong with the input. `where` names the parameter or key that is wrong ("bandwidth",
/// "parallel.tensor"; empty: the whole), so that a reader of YAML can turn it into line and column.
struct Problem {
    std::string where;
    std::string what;
};

template <class T>
using Result = tl::expected<T, Problem>;

inline tl::unexpected<Problem> problem(std::string where, std::string what) {
    return tl::unexpected<Problem>(Problem{std::move(where), std::move(what)});
}

}  // namespace fourfold
