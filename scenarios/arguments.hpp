#pragma once

// Values of command-line options. A problem's `where` is the option ("--ranks").

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulate.hpp"
#include "topology/result.hpp"
#include "topology/units.hpp"

namespace fourfold {

/// "2,4,8", "1..256", "1,2,8..16": numbers 1 .. 2^20, at most 2^16 of them, in the order given.
Result<std::vector<std::uint32_t>> number_list(std::string_view option, std::string_view text);

/// "ring,tree"; no name may be empty.
Result<std::vector<std::string>> name_list(std::string_view option, std::string_view text);

Result<LinkModel> link_model(std::string_view text);
Result<Routing> routing_argument(std::string_view text);

Result<Bytes> bytes_argument(std::string_view option, std::string_view text);
/// Empty: 0, for whole messages.
Result<Bytes> quantum_argument(std::string_view option, std::string_view text);
Result<BytesPerSecond> rate_argument(std::string_view option, std::string_view text);
Result<Duration> duration_argument(std::string_view option, std::string_view text);

/// Prints "fourfold: error: --ranks: ..." to standard error and returns the exit code.
int refuse(const Problem& problem);

}  // namespace fourfold
