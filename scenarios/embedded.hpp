#pragma once

// The YAML files that are part of the program: hardware, models and the quickstart.

#include <span>
#include <string_view>

namespace fourfold {

struct EmbeddedFile {
    std::string_view path;  // "models/gpt3-175b.yaml", relative to scenarios/
    std::string_view text;
};

/// By path.
std::span<const EmbeddedFile> embedded_files();

}  // namespace fourfold
