#pragma once

namespace fourfold {

/// For a program's start: from then on memory that it frees stays with it. Given back to the system
/// and taken anew, pages would be mapped and cleared each time a vector grows, which took a third
/// of the time of large steps. Does nothing without glibc.
void keep_freed_memory();

}  // namespace fourfold
