#pragma once

#include <utility>

#include "topology/check.hpp"
#include "topology/result.hpp"

namespace fourfold {

/// What a benchmark asks for can be made.
template <class T>
T valid(Result<T> result) {
    FOURFOLD_CHECK(result.has_value(), "{}: {}", result.error().where, result.error().what);
    return std::move(*result);
}

}  // namespace fourfold
