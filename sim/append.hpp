#pragma once

// Programs that run side by side on one network.

#include "sim/program.hpp"

namespace fourfold {

enum class AppendBackground : bool { no, yes };

/// Adds all of `program` to what the draft holds already. Its ids keep their order: task t becomes
/// the draft's former number of tasks plus t, and likewise everything else.
void append(const Program& program, AppendBackground background, ProgramDraft& draft);

}  // namespace fourfold
