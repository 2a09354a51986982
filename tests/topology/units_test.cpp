#include "topology/units.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace fourfold {
namespace {

// The value as a whole number, or the whole message.
template <class T>
std::string shown(const Result<T>& result) {
    if (!result) {
        CHECK(result.error().where.empty());
        return result.error().what;
    }
    if constexpr (std::is_same_v<T, double>) {
        return std::to_string(static_cast<std::int64_t>(*result));
    } else if constexpr (std::is_same_v<T, Duration>) {
        return std::to_string(result->count());
    } else {
        return std::to_string(result->value);
    }
}

struct Case {
    std::string text, expected;
};

template <class Parse>
void check_all(Parse parse, const std::vector<Case>& cases) {
    for (const Case& one : cases) {
        CAPTURE(one.text);
        CHECK(shown(parse(one.text)) == one.expected);
    }
}

constexpr Duration longest = duration_limit;

TEST_CASE("sizes are read exactly") {
    check_all(parse_bytes, {
                               {"64 MiB", "67108864"},
                               {"64MiB", "67108864"},
                               {"  64   MiB ", "67108864"},
                               {"0 B", "0"},
                               {"0.000 GB", "0"},
                               {"0e99 B", "0"},
                               {"1 B", "1"},
                               {"1.5 kB", "1500"},
                               {"1.50000000000000000000000000000000000000000000 kB", "1500"},
                               {"000000000000000000000000000000000000000000001 kB", "1000"},
                               {".5 KiB", "512"},
                               {"5. KiB", "5120"},
                               {"0.1 GB", "100000000"},
                               {"1e9 B", "1000000000"},
                               {"1.5E+3 B", "1500"},
                               {"25e-1 kB", "2500"},
                               {"2 TB", "2000000000000"},
                               {"2 TiB", "2199023255552"},
                               {"4 PB", "4000000000000000"},
                               // 2^-30 GiB, digit for digit: a power of two hides in ten decimals
                               {"0.000000000931322574615478515625 GiB", "1"},
                               {"4611686018427387904 B", "4611686018427387904"},
                           });
}

TEST_CASE("rates in bits are an eighth of rates in bytes") {
    check_all(parse_rate, {
                              {"25 GB/s", "25000000000"},
                              {"200 Gb/s", "25000000000"},
                              {"200 Gbps", "25000000000"},
                              {"100 Mbps", "12500000"},
                              {"1.6 Tbps", "200000000000"},
                              {"1.6 Tb/s", "200000000000"},
                              {"0.1 Gb/s", "12500000"},
                              {"8 b/s", "1"},
                              {"1 kb/s", "125"},
                              {"1 GiB/s", "1073741824"},
                              {"3.35 TB/s", "3350000000000"},
                              {"1 PB/s", "1000000000000000"},
                          });
}

TEST_CASE("durations are read to the picosecond") {
    check_all(parse_duration, {
                                  {"4.837620 ms", "4837620000"},
                                  {"5 us", "5000000"},
                                  {"5 \u00b5s", "5000000"},
                                  {"5 \u03bcs", "5000000"},
                                  {"0 s", "0"},
                                  {"1.5 ns", "1500"},
                                  {"24.8 s", "24800000000000"},
                                  {"2 min", "120000000000000"},
                                  {"0.25 h", "900000000000000"},
                                  // 0.1 + 0.2 in doubles would not be this
                                  {"0.300000000001 s", "300000000001"},
                                  {"4611686.018427387904 s", "4611686018427387904"},
                              });
}

TEST_CASE("FLOP rates are read with either spelling") {
    check_all(parse_flops_rate, {
                                    {"312 TFLOP/s", "312000000000000"},
                                    {"989.4 TFLOPS", "989400000000000"},
                                    {"1.979 PFLOP/s", "1979000000000000"},
                                    {"19.5GFLOP/s", "19500000000"},
                                    {"7 FLOP/s", "7"},
                                });
}

TEST_CASE("what is finer than a byte or a picosecond is refused, not rounded") {
    check_all(parse_bytes,
              {
                  {"1.5 B", "'1.5 B' is not a whole number of bytes"},
                  {"0.1 GiB", "'0.1 GiB' is not a whole number of bytes"},
                  {"1e-400 PB", "'1e-400 PB' is not a whole number of bytes"},
                  {"0.1234567890123456789012345678901234567890123 TB",
                   "'0.1234567890123456789012345678901234567890123 TB' is not a whole number of "
                   "bytes"},
              });
    check_all(parse_rate, {{"9 b/s", "'9 b/s' is not a whole number of bytes per second"},
                           {"0.5 B/s", "'0.5 B/s' is not a whole number of bytes per second"}});
    check_all(parse_duration, {{"0.5 ps", "'0.5 ps' is not a whole number of picoseconds"},
                               {"1.0001 ns", "'1.0001 ns' is not a whole number of picoseconds"}});
    check_all(parse_flops_rate, {{"0.5 FLOP/s", "'0.5 FLOP/s' is not a whole number of FLOP/s"}});
}

TEST_CASE("a number without a unit is told what a unit looks like") {
    check_all(parse_rate, {{"450", "'450' has no unit; write for example '25 GB/s'"},
                           {"1e9", "'1e9' has no unit; write for example '25 GB/s'"},
                           {" 450 ", "'450' has no unit; write for example '25 GB/s'"}});
    check_all(parse_bytes, {{"0", "'0' has no unit; write for example '64 MiB'"}});
    check_all(parse_duration, {{"-5", "'-5' has no unit; write for example '5 us'"}});
    check_all(parse_flops_rate, {{"312", "'312' has no unit; write for example '312 TFLOP/s'"}});
}

TEST_CASE("text that is no quantity is told what one looks like") {
    check_all(
        parse_rate,
        {
            {"", "no value; write for example '25 GB/s'"},
            {"   ", "no value; write for example '25 GB/s'"},
            {"fast", "'fast' is not a number with a unit; write for example '25 GB/s'"},
            {"GB/s", "'GB/s' is not a number with a unit; write for example '25 GB/s'"},
            {".", "'.' is not a number with a unit; write for example '25 GB/s'"},
            {"-", "'-' is not a number with a unit; write for example '25 GB/s'"},
            {"nan GB/s", "'nan GB/s' is not a number with a unit; write for example '25 GB/s'"},
            {"1,000 GB/s", "'1,000 GB/s' has a ',' in its number; write for example '25 GB/s'"},
            {"1_000 GB/s", "'1_000 GB/s' has a '_' in its number; write for example '25 GB/s'"},
        });
}

TEST_CASE("an unknown unit is told the nearest ones") {
    check_all(parse_rate,
              {
                  {"25 gb/s", "unknown unit 'gb/s'; did you mean 'Gb/s' (bits) or 'GB/s' (bytes)?"},
                  {"25 GBps", "unknown unit 'GBps'; did you mean 'GB/s'?"},
                  {"25 gbps", "unknown unit 'gbps'; did you mean 'Gb/s' (bits) or 'GB/s' (bytes)?"},
                  {"25 gib/s", "unknown unit 'gib/s'; did you mean 'GiB/s'?"},
                  {"25 GB", "unknown unit 'GB'; did you mean 'GB/s'?"},
                  {"25 Gb", "unknown unit 'Gb'; did you mean 'Gb/s'?"},
                  {"25 GB/sec", "unknown unit 'GB/sec'; did you mean 'GB/s'?"},
              });
    check_all(parse_bytes, {
                               {"1 KB", "unknown unit 'KB'; did you mean 'kB'?"},
                               {"1 kib", "unknown unit 'kib'; did you mean 'KiB'?"},
                               {"1 Gb", "unknown unit 'Gb'; did you mean 'GB'?"},
                               {"1 mb", "unknown unit 'mb'; did you mean 'MB'?"},
                               {"64 MiB/s", "unknown unit 'MiB/s'; did you mean 'MiB'?"},
                               {"1 parsec",
                                "unknown unit 'parsec'; known: B, kB, MB, GB, TB, PB, KiB, MiB, "
                                "GiB, TiB"},
                           });
    check_all(parse_duration,
              {
                  {"5 US", "unknown unit 'US'; did you mean 'us'?"},
                  {"5 Ms", "unknown unit 'Ms'; did you mean 'ms'?"},
                  {"5 seconds", "unknown unit 'seconds'; known: ps, ns, us, ms, s, min, h"},
              });
    check_all(parse_flops_rate, {{"312 TFlop/s", "unknown unit 'TFlop/s'; did you mean 'TFLOP/s'?"},
                                 {"312 TFLOP", "unknown unit 'TFLOP'; did you mean 'TFLOP/s'?"}});
}

TEST_CASE("negative and zero values are refused where they cannot be") {
    check_all(parse_bytes, {{"-1 B", "'-1 B' is negative; a size is zero or more"},
                            {"-1e30 B", "'-1e30 B' is negative; a size is zero or more"}});
    check_all(parse_duration, {{"-5 us", "'-5 us' is negative; a duration is zero or more"}});
    check_all(parse_rate, {{"-5 GB/s", "'-5 GB/s' is negative; a rate is more than zero"},
                           {"0 GB/s", "'0 GB/s' is zero; a rate is more than zero"},
                           {"0.0 Gb/s", "'0.0 Gb/s' is zero; a rate is more than zero"}});
    check_all(parse_flops_rate, {{"0 FLOP/s", "'0 FLOP/s' is zero; a rate is more than zero"}});
}

TEST_CASE("a value beyond the limit is refused, not wrapped") {
    check_all(
        parse_bytes,
        {
            {"4611686018427387905 B", "'4611686018427387905 B' is too large; at most 4612 PB"},
            {"5000 PB", "'5000 PB' is too large; at most 4612 PB"},
            {"1e99999999999999999999 B",
             "'1e99999999999999999999 B' is too large; at most 4612 PB"},
            {"18446744073709551617 B", "'18446744073709551617 B' is too large; at most 4612 PB"},
            {"340282366920938463463374607431768211457 B",
             "'340282366920938463463374607431768211457 B' is too large; at most 4612 PB"},
        });
    check_all(parse_duration, {{"2000 h", "'2000 h' is too large; at most 1281 h"}});
    check_all(parse_rate, {{"1e20 Tb/s", "'1e20 Tb/s' is too large; at most 4612 PB/s"}});
    check_all(parse_flops_rate,
              {{"1e4 PFLOP/s", "'1e4 PFLOP/s' is too large; at most 4612 PFLOP/s"}});
}

TEST_CASE("sizes print in binary units where they are even, else in decimal ones") {
    CHECK(to_text(64_MiB) == "64 MiB");
    CHECK(to_text(1536_KiB) == "1536 KiB");
    CHECK(to_text(Bytes{std::int64_t{80} << 30}) == "80 GiB");
    CHECK(to_text(Bytes{std::int64_t{2} << 40}) == "2 TiB");
    CHECK(to_text(Bytes{100'663'297}) == "100.7 MB");
    CHECK(to_text(Bytes{100'000'000'000}) == "100 GB");
    CHECK(to_text(Bytes{16'000'000}) == "16 MB");  // 15,625 KiB: no one would count these
    CHECK(to_text(0_B) == "0 B");
    CHECK(to_text(999_B) == "999 B");
    CHECK(to_text(1001_B) == "1.001 kB");
    CHECK(to_text(12'345_B) == "12.35 kB");  // halves go up
    CHECK(to_text(999'949_B) == "999.9 kB");
    CHECK(to_text(999'951_B) == "1 MB");
    CHECK(to_text(Bytes{-1500}) == "-1.5 kB");
    CHECK(to_text(Bytes{std::numeric_limits<std::int64_t>::max()}) == "9223 PB");
    CHECK(to_text(Bytes{std::numeric_limits<std::int64_t>::min()}) == "-9223 PB");
}

TEST_CASE("rates and durations print to four significant digits") {
    CHECK(to_text(25_GBps) == "25 GB/s");
    CHECK(to_text(BytesPerSecond{12'500'000}) == "12.5 MB/s");
    CHECK(to_text(BytesPerSecond{3'350'000'000'000}) == "3.35 TB/s");
    CHECK(to_text(BytesPerSecond{1}) == "1 B/s");
    CHECK(to_text(Duration(4'837'620'000)) == "4.838 ms");
    CHECK(to_text(5_us) == "5 us");
    CHECK(to_text(1500_ns) == "1.5 us");
    CHECK(to_text(7_ps) == "7 ps");
    CHECK(to_text(Duration(0)) == "0 s");
    CHECK(to_text(Duration(-1500)) == "-1.5 ns");
    CHECK(to_text(Duration(24'800'000'000'000)) == "24.8 s");
    CHECK(to_text(Duration(90'000'000'000'000)) == "90 s");
    CHECK(to_text(Duration(3'599'400'000'000'000)) == "3599 s");
    CHECK(to_text(Duration(3'600'000'000'000'000)) == "1 h");
    CHECK(to_text(longest) == "1281 h");
}

TEST_CASE("what is printed is read back, where four digits are enough") {
    for (const Bytes bytes : {0_B, 1_B, 999_B, 64_MiB, 3_KiB, 1'234'000_B}) {
        CHECK(parse_bytes(to_text(bytes)) == bytes);
    }
    for (const BytesPerSecond rate : {25_GBps, 300_GBps, BytesPerSecond{1}}) {
        CHECK(parse_rate(to_text(rate)) == rate);
    }
    for (const Duration duration : {Duration(0), 1_ps, 1500_ns, 5_us, 18'500'000'000_ps}) {
        CHECK(parse_duration(to_text(duration)) == duration);
    }
}

TEST_CASE("bytes become time rounded up") {
    // 1 B at 3 B/s: 333,333,333,333.3 ps
    CHECK(1_B / BytesPerSecond{3} == Duration(333'333'333'334));
    // 25 GB/s is 40 ps a byte
    CHECK(1_B / 25_GBps == 40_ps);
    // faster than a byte a picosecond, and still not free
    CHECK(1_B / BytesPerSecond{4'000'000'000'000} == 1_ps);
    CHECK(5_B / BytesPerSecond{4'000'000'000'000} == 2_ps);
    CHECK(0_B / 25_GBps == 0_ps);
    // 64 MiB = 67,108,864 B at 450 GB/s: 149,130,808.9 ps
    CHECK(64_MiB / 450_GBps == Duration(149'130'809));
}

TEST_CASE("a time beyond the limit saturates") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    CHECK(Bytes{most} / BytesPerSecond{1} == longest);
    CHECK(Bytes{4'611'687} / BytesPerSecond{1} == longest);  // just above 4,611,686.02 s
    CHECK(Bytes{4'611'686} / BytesPerSecond{1} == Duration(4'611'686'000'000'000'000));
    CHECK(Bytes{most} / BytesPerSecond{most} == Duration(1'000'000'000'000));
}

TEST_CASE("equal pieces are padded to whole bytes") {
    CHECK(ceil_div(10_B, 3) == 4_B);
    CHECK(ceil_div(9_B, 3) == 3_B);
    CHECK(ceil_div(1_B, 1024) == 1_B);
    CHECK(ceil_div(0_B, 7) == 0_B);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    CHECK(ceil_div(Bytes{most}, 2) == Bytes{most / 2 + 1});
}

TEST_CASE("a duration is scaled to the nearest picosecond") {
    CHECK(scale(100_ps, 1.3) == 130_ps);
    CHECK(scale(5_ps, 0.5) == 3_ps);  // 2.5: halves go away from zero
    CHECK(scale(10_ps, 0.24) == 2_ps);
    CHECK(scale(10_ps, 0.26) == 3_ps);
    CHECK(scale(10_ps, 0) == 0_ps);
    CHECK(scale(0_ps, 1e300) == 0_ps);
    CHECK(scale(10_ps, 1e-300) == 0_ps);
    // 2^53 + 1 has no double: a factor of one must still keep it
    CHECK(scale(Duration(9'007'199'254'740'993), 1.0) == Duration(9'007'199'254'740'993));
    CHECK(scale(1_ms, 1e300) == longest);
    CHECK(scale(longest, 2.0) == longest);
    CHECK(scale(1_ps, std::numeric_limits<double>::infinity()) == longest);
}

TEST_CASE("a model's seconds become the nearest picosecond") {
    CHECK(from_seconds(0.7e-6) == 700_ns);
    CHECK(from_seconds(24.8) == Duration(24'800'000'000'000));
    CHECK(from_seconds(0) == 0_ps);
    CHECK(from_seconds(0.4e-12) == 0_ps);
    CHECK(from_seconds(0.6e-12) == 1_ps);
    CHECK(from_seconds(1e9) == longest);
    CHECK(to_seconds(24'800_ms) == 24.8);
    CHECK(to_seconds(Time(5_us)) == 5e-6);
}

}  // namespace
}  // namespace fourfold
