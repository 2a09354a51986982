#pragma once

// Quantities. Time is whole picoseconds in 64 bits (106 days either way), never a double. GB is
// 10^9 bytes, GiB is 2^30; b is bits, B is bytes.

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "topology/result.hpp"

namespace fourfold {

using Duration = std::chrono::duration<std::int64_t, std::pico>;

/// The clock of a simulated run: 0 is the start of the step.
struct SimulatedClock {};
using Time = std::chrono::time_point<SimulatedClock, Duration>;

/// The longest time that can be represented and still be added to without overflow (53 days).
inline constexpr Duration duration_limit{std::int64_t{1} << 62};

template <class Tag>
struct Quantity {
    std::int64_t value = 0;

    friend constexpr auto operator<=>(Quantity, Quantity) = default;
    friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
    friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
    friend constexpr Quantity operator*(Quantity a, std::int64_t n) { return {a.value * n}; }
    friend constexpr Quantity operator*(std::int64_t n, Quantity a) { return {a.value * n}; }
    constexpr Quantity& operator+=(Quantity other) {
        value += other.value;
        return *this;
    }
};

using Bytes = Quantity<struct BytesTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;

/// The one place where bytes become time: rounded up to a whole picosecond, so that no message is
/// free. Saturates at `duration_limit`. Requires: bytes >= 0, rate > 0.
Duration operator/(Bytes bytes, BytesPerSecond rate);

/// bytes / parts, rounded up: the padded size of one of `parts` equal pieces. Requires: parts > 0.
Bytes ceil_div(Bytes bytes, std::int64_t parts);

/// `duration` * `factor`, rounded to the nearest picosecond; saturates at `duration_limit`.
/// Requires: duration >= 0, factor >= 0.
Duration scale(Duration duration, double factor);

/// From a model's seconds, rounded to the nearest picosecond; saturates at `duration_limit`.
/// Requires: seconds >= 0.
Duration from_seconds(double seconds);

/// For people and for ratios only.
double to_seconds(Duration duration);
inline double to_seconds(Time time) { return to_seconds(time.time_since_epoch()); }

// Text to quantity. The unit is required and its case matters: "64 MiB", "25 GB/s", "200 Gb/s",
// "5 us", "312 TFLOP/s". A problem's text says what is wrong and shows an example; its `where` is
// empty.
Result<Bytes> parse_bytes(std::string_view text);
Result<BytesPerSecond> parse_rate(std::string_view text);
Result<Duration> parse_duration(std::string_view text);
Result<double> parse_flops_rate(std::string_view text);  // FLOP/s

// Quantity to text, four significant digits, with the unit: "64 MiB", "25 GB/s", "4.838 ms".
std::string to_text(Bytes bytes);
std::string to_text(BytesPerSecond rate);
std::string to_text(Duration duration);

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) {
    return {static_cast<std::int64_t>(n) << 10};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
    return {static_cast<std::int64_t>(n) << 20};
}
constexpr BytesPerSecond operator""_GBps(unsigned long long n) {
    return {static_cast<std::int64_t>(n) * 1'000'000'000};
}
constexpr Duration operator""_ps(unsigned long long n) { return Duration(n); }
constexpr Duration operator""_ns(unsigned long long n) { return Duration(n * 1'000); }
constexpr Duration operator""_us(unsigned long long n) { return Duration(n * 1'000'000); }
constexpr Duration operator""_ms(unsigned long long n) { return Duration(n * 1'000'000'000); }
}  // namespace literals

}  // namespace fourfold
