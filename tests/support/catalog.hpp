#pragma once

// The catalog that is part of the program, read once.

#include <doctest/doctest.h>

#include "scenarios/catalog.hpp"

namespace fourfold {

inline const Catalog& catalog() {
    static const auto loaded = embedded_catalog();
    REQUIRE_MESSAGE(loaded, to_text(loaded.error()));
    return *loaded;
}

}  // namespace fourfold
