#include "topology/units.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "topology/check.hpp"
#include "topology/closest.hpp"

// Text becomes a quantity in whole numbers only: "4.837620 ms" is 4837620 * 10^-6 * 10^9 ps. The
// decimal point and the unit turn into factors 2 and 5 to divide by, which must cancel; what does
// not cancel is finer than a picosecond or a byte, and refused instead of rounded.

namespace fourfold {
namespace {

using Wide = unsigned __int128;

constexpr std::int64_t picoseconds_per_second = 1'000'000'000'000;
/// Of every quantity, so that two of them can still be added.
constexpr std::int64_t quantity_limit = duration_limit.count();

// ---------------------------------------------------------------------------------- arithmetic

/// value * factor, to the nearest whole number (halves away from zero), at most the limit. Exact: a
/// double is a 53-bit whole number times a power of two. Requires: value >= 0, factor >= 0.
std::int64_t multiply(std::int64_t value, double factor) {
    if (value == 0 || factor == 0) return 0;
    if (std::isinf(factor)) return quantity_limit;
    int exponent = 0;
    const double fraction = std::frexp(factor, &exponent);  // in [0.5, 1)
    Wide product = static_cast<Wide>(value) * static_cast<std::uint64_t>(std::ldexp(fraction, 53));
    exponent -= 53;  // now value * factor = product * 2^exponent
    constexpr Wide limit = quantity_limit;
    if (exponent >= 0) {
        const bool overflows = exponent > 62 || product > (limit >> exponent);
        return overflows ? quantity_limit : static_cast<std::int64_t>(product << exponent);
    }
    if (exponent < -118) return 0;  // the product has at most 116 bits
    product = ((product >> (-exponent - 1)) + 1) >> 1;
    return static_cast<std::int64_t>(std::min(product, limit));
}

// ------------------------------------------------------------------------------------- parsing

struct Unit {
    std::string_view name;
    std::uint64_t factor;
    bool bits = false;    // the factor counts eighths
    bool offered = true;  // in messages; other spellings are understood, but not suggested
};

/// What is being read, in the words of its messages.
struct Kind {
    std::span<const Unit> units;
    std::string_view example;
    std::string_view grain;    // "a whole number of ..."
    std::string_view minimum;  // "... is zero or more"
    bool zero_allowed = false;
    std::string (*print)(std::int64_t) = nullptr;
};

constexpr std::uint64_t kilo = 1'000, mega = kilo * kilo, giga = kilo * mega, tera = kilo * giga,
                        peta = kilo * tera;

constexpr auto byte_units = std::to_array<Unit>({
    {"B", 1},
    {"kB", kilo},
    {"MB", mega},
    {"GB", giga},
    {"TB", tera},
    {"PB", peta},
    {"KiB", std::uint64_t{1} << 10},
    {"MiB", std::uint64_t{1} << 20},
    {"GiB", std::uint64_t{1} << 30},
    {"TiB", std::uint64_t{1} << 40},
});

constexpr auto rate_units = std::to_array<Unit>({
    {"b/s", 1, true},
    {"kb/s", kilo, true},
    {"Mb/s", mega, true},
    {"Gb/s", giga, true},
    {"Tb/s", tera, true},
    {"B/s", 1},
    {"kB/s", kilo},
    {"MB/s", mega},
    {"GB/s", giga},
    {"TB/s", tera},
    {"PB/s", peta},
    {"KiB/s", std::uint64_t{1} << 10},
    {"MiB/s", std::uint64_t{1} << 20},
    {"GiB/s", std::uint64_t{1} << 30},
    {"TiB/s", std::uint64_t{1} << 40},
    {"Mbps", mega, true, false},
    {"Gbps", giga, true, false},
    {"Tbps", tera, true, false},
});

constexpr auto duration_units = std::to_array<Unit>({
    {"ps", 1},
    {"ns", kilo},
    {"us", mega},
    {"ms", giga},
    {"s", tera},
    {"min", 60 * tera},
    {"h", 3600 * tera},
    {"\u00b5s", mega, false, false},  // micro sign
    {"\u03bcs", mega, false, false},  // Greek mu
});

constexpr auto flops_units = std::to_array<Unit>({
    {"FLOP/s", 1},
    {"GFLOP/s", giga},
    {"TFLOP/s", tera},
    {"PFLOP/s", peta},
    {"FLOPS", 1, false, false},
    {"GFLOPS", giga, false, false},
    {"TFLOPS", tera, false, false},
    {"PFLOPS", peta, false, false},
});

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text) {
    constexpr std::string_view blank = " \t\r\n";
    const auto begin = text.find_first_not_of(blank);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

/// digits * 10^exponent; neither begins nor ends with a zero.
struct Number {
    std::string digits;
    std::int64_t exponent = 0;
};

/// Takes the exponent of "1e9" off the front of `text`, if there is one. Beyond +-10,000 nothing
/// differs any more.
std::int64_t take_exponent(std::string_view& text) {
    if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return 0;
    std::size_t at = 1;
    const bool negative = text.size() > at && text[at] == '-';
    if (text.size() > at && (text[at] == '-' || text[at] == '+')) ++at;
    if (text.size() == at || !is_digit(text[at])) return 0;
    std::int64_t exponent = 0;
    for (; at < text.size() && is_digit(text[at]); ++at) {
        exponent = std::min<std::int64_t>(exponent * 10 + (text[at] - '0'), 10'000);
    }
    text.remove_prefix(at);
    return negative ? -exponent : exponent;
}

/// Takes "12", "12.5" or "1e9" off the front of `text`. Returns: nothing where no number is.
std::optional<Number> take_number(std::string_view& text) {
    Number number;
    bool fraction = false;
    std::size_t at = 0;
    for (; at < text.size(); ++at) {
        if (text[at] == '.' && !fraction) {
            fraction = true;
        } else if (is_digit(text[at])) {
            number.digits += text[at];
            if (fraction) --number.exponent;
        } else {
            break;
        }
    }
    if (number.digits.empty()) return std::nullopt;
    text.remove_prefix(at);
    number.exponent += take_exponent(text);
    while (number.digits.ends_with('0')) {
        number.digits.pop_back();
        ++number.exponent;
    }
    number.digits.erase(0, number.digits.find_first_not_of('0'));
    return number;
}

enum class Fault { too_large, too_fine };

/// a / divisor where that is whole, else b / divisor where that is. Returns: whether either was.
bool cancel(Wide& a, Wide& b, unsigned divisor) {
    Wide& whole = a % divisor == 0 ? a : b;
    if (whole % divisor != 0) return false;
    whole /= divisor;
    return true;
}

/// number * unit, exactly.
tl::expected<std::int64_t, Fault> evaluate(const Number& number, const Unit& unit) {
    constexpr Wide limit = quantity_limit;
    if (number.digits.empty()) return 0;
    const auto magnitude = static_cast<std::int64_t>(number.digits.size()) + number.exponent;
    if (magnitude > 20) return tl::unexpected(Fault::too_large);  // even in b/s
    if (number.digits.size() > 38) return tl::unexpected(Fault::too_fine);
    Wide digits = 0, factor = unit.factor;
    for (const char c : number.digits) digits = digits * 10 + static_cast<unsigned>(c - '0');
    for (std::int64_t i = 0; i < number.exponent; ++i) digits *= 10;  // 20 digits at most
    for (int i = 0; unit.bits && i < 3; ++i) {
        if (!cancel(digits, factor, 2)) return tl::unexpected(Fault::too_fine);
    }
    for (std::int64_t i = number.exponent; i < 0; ++i) {
        if (!cancel(digits, factor, 2) || !cancel(digits, factor, 5)) {
            return tl::unexpected(Fault::too_fine);
        }
    }
    if (digits > limit / factor) return tl::unexpected(Fault::too_large);
    return static_cast<std::int64_t>(digits * factor);
}

/// Without "/s" or "ps": so that "GBps" and "GB" are found near "GB/s".
std::string_view stem(std::string_view unit) {
    const bool per_second = unit.size() > 2 && (unit.ends_with("/s") || unit.ends_with("ps"));
    return unit.substr(0, unit.size() - (per_second ? 2 : 0));
}

std::string lower(std::string_view text) {
    std::string result;
    for (const char c : text) {
        result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return result;
}

std::string unknown_unit(std::string_view word, std::span<const Unit> units) {
    std::vector<std::string_view> names;
    std::vector<std::string> alike;
    for (const Unit& unit : units) {
        if (!unit.offered) continue;
        names.push_back(unit.name);
        if (stem(unit.name) == stem(word)) {
            return fmt::format("unknown unit '{}'; did you mean '{}'?", word, unit.name);
        }
        if (lower(stem(unit.name)) == lower(stem(word))) {
            alike.push_back(fmt::format("'{}'{}", unit.name, unit.bits ? " (bits)" : ""));
        }
    }
    if (alike.empty()) return unknown("unit", word, names);
    if (alike.size() > 1) alike.back() += " (bytes)";  // only bits and bytes are that much alike
    return fmt::format("unknown unit '{}'; did you mean {}?", word, fmt::join(alike, " or "));
}

Result<std::int64_t> parse(std::string_view whole, const Kind& kind) {
    const std::string_view text = trim(whole);
    const auto refuse = [&](std::string_view why) {
        return problem("", fmt::format("'{}' {}; write for example '{}'", text, why, kind.example));
    };
    if (text.empty()) {
        return problem("", fmt::format("no value; write for example '{}'", kind.example));
    }
    std::string_view rest = text.substr(text[0] == '-' ? 1 : 0);
    const auto number = take_number(rest);
    if (!number) return refuse("is not a number with a unit");
    if (rest.starts_with('.')) return refuse("has two points in its number");
    if (rest.starts_with(',') || rest.starts_with('_')) {
        return refuse(fmt::format("has a '{}' in its number", rest[0]));
    }
    rest = trim(rest);
    if (rest.empty()) return refuse("has no unit");
    const auto unit = std::ranges::find(kind.units, rest, &Unit::name);
    if (unit == kind.units.end()) return problem("", unknown_unit(rest, kind.units));

    const auto value = evaluate(*number, *unit);
    if (!value && value.error() == Fault::too_fine) {
        return problem("", fmt::format("'{}' is not a whole number of {}", text, kind.grain));
    }
    if (text[0] == '-') {
        return problem("", fmt::format("'{}' is negative; {}", text, kind.minimum));
    }
    if (!value) {
        return problem(
            "", fmt::format("'{}' is too large; at most {}", text, kind.print(quantity_limit)));
    }
    if (*value == 0 && !kind.zero_allowed) {
        return problem("", fmt::format("'{}' is zero; {}", text, kind.minimum));
    }
    return *value;
}

// ------------------------------------------------------------------------------------ printing

struct Step {
    std::string_view name;
    std::int64_t factor;
};

constexpr auto decimal_steps = std::to_array<Step>({
    {"", 1},
    {"k", kilo},
    {"M", mega},
    {"G", giga},
    {"T", tera},
    {"P", peta},
});
constexpr auto binary_steps = std::to_array<Step>({
    {"Ki", 1LL << 10},
    {"Mi", 1LL << 20},
    {"Gi", 1LL << 30},
    {"Ti", 1LL << 40},
});
// No minutes: step times read and compare best in seconds.
constexpr auto time_steps = std::to_array<Step>({
    {"ps", 1},
    {"ns", kilo},
    {"us", mega},
    {"ms", giga},
    {"s", tera},
    {"h", 3600 * tera},
});

std::uint64_t magnitude(std::int64_t value) {
    return value < 0 ? -static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

/// value / factor to four significant digits, as digits / 10^decimals; whole numbers are kept.
struct Rounded {
    std::uint64_t digits = 0;
    int decimals = 0;
    std::uint64_t whole = 1;  // 10^decimals
};

Rounded rounded(std::uint64_t value, std::int64_t factor) {
    const auto unit = static_cast<std::uint64_t>(factor);
    Rounded result;
    for (std::uint64_t left = value / unit; left < 1000 && result.decimals < 3;
         left = std::max<std::uint64_t>(left, 1) * 10) {
        ++result.decimals;
        result.whole *= 10;
    }
    result.digits = static_cast<std::uint64_t>(
        (static_cast<Wide>(value) * result.whole * 2 + unit) / (static_cast<Wide>(unit) * 2));
    return result;
}

/// In the largest step that it fills. Requires: `steps` rise and begin with 1.
std::string print(std::int64_t value, std::span<const Step> steps, std::string_view unit) {
    const std::uint64_t size = magnitude(value);
    std::size_t at = 0;
    const auto fills = [&](std::size_t next) {  // also 999.96 k, which rounds to 1 M
        const Rounded here = rounded(size, steps[at].factor);
        return static_cast<Wide>(here.digits) * static_cast<std::uint64_t>(steps[at].factor) >=
               static_cast<Wide>(here.whole) * static_cast<std::uint64_t>(steps[next].factor);
    };
    while (at + 1 < steps.size() && fills(at + 1)) ++at;

    const Rounded amount = rounded(size, steps[at].factor);
    std::string digits = fmt::format("{}", amount.digits / amount.whole);
    if (amount.digits % amount.whole != 0) {
        digits += fmt::format(".{:0{}}", amount.digits % amount.whole, amount.decimals);
        digits.erase(digits.find_last_not_of('0') + 1);
    }
    return fmt::format("{}{} {}{}", value < 0 ? "-" : "", digits, steps[at].name, unit);
}

std::string print_bytes(std::int64_t value) {
    for (auto step = binary_steps.rbegin(); step != binary_steps.rend(); ++step) {
        const bool even = value != 0 && value % step->factor == 0;
        if (even && magnitude(value / step->factor) < 10'000) {
            return fmt::format("{} {}B", value / step->factor, step->name);
        }
    }
    return print(value, decimal_steps, "B");
}

std::string print_rate(std::int64_t value) { return print(value, decimal_steps, "B/s"); }

std::string print_flops(std::int64_t value) { return print(value, decimal_steps, "FLOP/s"); }

std::string print_duration(std::int64_t value) {
    return value == 0 ? "0 s" : print(value, time_steps, "");
}

const Kind bytes_kind{.units = byte_units,
                      .example = "64 MiB",
                      .grain = "bytes",
                      .minimum = "a size is zero or more",
                      .zero_allowed = true,
                      .print = print_bytes};
const Kind rate_kind{.units = rate_units,
                     .example = "25 GB/s",
                     .grain = "bytes per second",
                     .minimum = "a rate is more than zero",
                     .print = print_rate};
const Kind duration_kind{.units = duration_units,
                         .example = "5 us",
                         .grain = "picoseconds",
                         .minimum = "a duration is zero or more",
                         .zero_allowed = true,
                         .print = print_duration};
const Kind flops_kind{.units = flops_units,
                      .example = "312 TFLOP/s",
                      .grain = "FLOP/s",
                      .minimum = "a rate is more than zero",
                      .print = print_flops};

}  // namespace

Duration operator/(Bytes bytes, BytesPerSecond rate) {
    FOURFOLD_CHECK(bytes.value >= 0 && rate.value > 0, "{} B at {} B/s", bytes.value, rate.value);
    const Wide work = static_cast<Wide>(bytes.value) * picoseconds_per_second;
    const auto speed = static_cast<std::uint64_t>(rate.value);
    const Wide time = (work + speed - 1) / speed;
    return Duration(static_cast<std::int64_t>(std::min<Wide>(time, duration_limit.count())));
}

Bytes ceil_div(Bytes bytes, std::int64_t parts) {
    FOURFOLD_CHECK(bytes.value >= 0 && parts > 0, "{} B in {} parts", bytes.value, parts);
    return {bytes.value / parts + (bytes.value % parts == 0 ? 0 : 1)};
}

Duration scale(Duration duration, double factor) {
    FOURFOLD_CHECK(duration.count() >= 0 && factor >= 0, "{} ps * {}", duration.count(), factor);
    return Duration(multiply(duration.count(), factor));
}

Duration from_seconds(double seconds) {
    FOURFOLD_CHECK(seconds >= 0, "{} s", seconds);
    return Duration(multiply(picoseconds_per_second, seconds));
}

double to_seconds(Duration duration) {
    return static_cast<double>(duration.count()) / static_cast<double>(picoseconds_per_second);
}

Result<Bytes> parse_bytes(std::string_view text) {
    return parse(text, bytes_kind).map([](std::int64_t value) { return Bytes{value}; });
}

Result<BytesPerSecond> parse_rate(std::string_view text) {
    return parse(text, rate_kind).map([](std::int64_t value) { return BytesPerSecond{value}; });
}

Result<Duration> parse_duration(std::string_view text) {
    return parse(text, duration_kind).map([](std::int64_t value) { return Duration(value); });
}

Result<double> parse_flops_rate(std::string_view text) {
    return parse(text, flops_kind).map([](std::int64_t value) {
        return static_cast<double>(value);
    });
}

std::string to_text(Bytes bytes) { return print_bytes(bytes.value); }
std::string to_text(BytesPerSecond rate) { return print_rate(rate.value); }
std::string to_text(Duration duration) { return print_duration(duration.count()); }

}  // namespace fourfold
