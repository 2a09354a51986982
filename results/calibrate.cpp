#include "results/calibrate.hpp"

// The constants that make the mean of |log(predicted / measured)| over the samples smallest. Logs,
// because kernels take from microseconds to a second and none may outvote the others; absolute
// values, because a measurement that went wrong (another job, a cold clock) must not pull. Such a
// sum has kinks and the kernel times have steps (whole waves), so the search uses no derivative
// (results/nelder_mead.hpp). It begins at the base's constants, and a spring far weaker than the
// data holds it there, so that what the samples do not tell stays as it was.
//
// Cross-validation: samples in order of their shape, shape i in fold i mod 4. Each fold is
// predicted by constants fitted on the others. All samples of a shape share a fold, or a repeated
// measurement would predict itself. The table of measured shapes that corrects the formula
// (workloads/kernels.cpp) is tried likewise: the shapes of a fold are predicted with a table of the
// others, and with what the constants fitted on the others miss of them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "results/nelder_mead.hpp"
#include "topology/check.hpp"

namespace fourfold {
namespace {

constexpr std::size_t folds = 4;
constexpr std::size_t fitted_samples_max = 1000;
constexpr std::size_t shapes_per_constant = 2;  // at least, or there is nothing to fit
constexpr double spring = 5e-4;                 // of the error, where a constant has doubled
constexpr double first_step = 0.15;             // of a constant
constexpr double seen_min = 2e-5;  // a tenth of a constant must change the mean time by as much
constexpr double nothing = 1e-4;   // of a constant: no more than 0
constexpr double too_slow = 0.01;  // of it, for all samples
constexpr double too_fast = 2;     // times the sheet's peak
constexpr double shapes_gain_min = 1e-3;  // of the mean error, or a table is not worth its lines
constexpr double kept_ratio_max = gemm_ratio_max / 2;  // that of a file, whatever it rounds
constexpr double sure = 2;  // standard errors: of noise, one table in twenty is kept

// ---- What the samples have in common

auto shape_of(const GemmSample& one) { return std::tuple(one.gemm.m, one.gemm.n, one.gemm.k); }
auto shape_of(const MemorySample& one) { return one.bytes; }
auto shape_of(const AllReduceSample& one) { return std::tuple(one.ranks, one.bytes); }
auto shape_of(const MessageSample& one) { return one.bytes; }

// All of a sample, so that no order of rows in a file decides anything.
auto order_of(const GemmSample& one) {
    return std::tuple(shape_of(one), one.gemm.batch, one.gemm.layout, one.time_s);
}
template <class Sample>
auto order_of(const Sample& one) {
    return std::tuple(shape_of(one), one.time_s);
}

double time_of(const GemmSample& one, const Device& device) { return gemm_time(one.gemm, device); }
double time_of(const MemorySample& one, const Device& device) {
    return memory_time(static_cast<double>(one.bytes.value), device, 1);
}
double time_of(const AllReduceSample& one, const LinkConstants& link) {
    return all_reduce_time(one.ranks, one.bytes, link);
}
double time_of(const MessageSample& one, const LinkConstants& link) {
    return message_time(one.bytes, link);
}

template <class Sample, class Subject>
double error_of(const Sample& one, const Subject& subject) {
    return std::abs(time_of(one, subject) / one.time_s - 1);
}

// FLOPs, or bytes through a device's memory or port: what the sheet's rate applies to.
double work_of(const GemmSample& one) { return flops(one.gemm); }
double work_of(const AllReduceSample& one) {
    return 2.0 * (one.ranks - 1) / one.ranks * static_cast<double>(one.bytes.value);
}
template <class Sample>
double work_of(const Sample& one) {
    return static_cast<double>(one.bytes.value);
}

// For the classes of the report.
double size_of(const GemmSample& one) { return flops(one.gemm); }
template <class Sample>
double size_of(const Sample& one) {
    return static_cast<double>(one.bytes.value);
}

struct SizeClass {
    std::string_view name;
    double below;
};
constexpr double no_limit = std::numeric_limits<double>::infinity();
constexpr double mib = 1 << 20;
constexpr std::array<SizeClass, 3> flop_classes{
    {{"below 50 GFLOP", 50e9}, {"50 to 200 GFLOP", 200e9}, {"200 GFLOP and more", no_limit}}};
constexpr std::array<SizeClass, 3> byte_classes{
    {{"below 1 MiB", mib}, {"1 to 64 MiB", 64 * mib}, {"64 MiB and more", no_limit}}};

std::size_t class_of(double size, std::span<const SizeClass> classes) {
    std::size_t found = 0;
    while (size >= classes[found].below) ++found;
    return found;
}

// ---- What is fitted

struct Range {
    double typical;   // the unit of steps where the base has 0
    double min, max;  // as the catalog's reader accepts
};
constexpr double tiny = 1e-4;  // for what must be above zero
constexpr Range efficiency_range{.typical = 0.8, .min = tiny, .max = 1};
// Seconds; no start of a kernel or collective takes longer than one.
constexpr Range start_range{.typical = 1e-6, .min = 0, .max = 1};

template <class Subject>
struct Parameter {
    std::string_view key;
    ConstantUnit unit;
    Range range;
    double (*get)(const Subject&);
    void (*set)(Subject&, double);
};

template <class Subject>
struct Kernel {
    std::string_view name;
    std::string_view different;  // what differs between samples: "shapes"
    std::span<const SizeClass> classes;
    double sheet_rate;
    std::string sheet;  // "a peak of 312 TFLOP/s"
    std::vector<Parameter<Subject>> parameters;
};

template <double GemmConstants::*constant>
Parameter<Device> of_gemm(std::string_view key, ConstantUnit unit, const Range& range) {
    return {key, unit, range, [](const Device& device) { return device.gemm.*constant; },
            [](Device& device, double value) { device.gemm.*constant = value; }};
}

template <double Device::*constant>
Parameter<Device> of_device(std::string_view key, ConstantUnit unit, const Range& range) {
    return {key, unit, range, [](const Device& device) { return device.*constant; },
            [](Device& device, double value) { device.*constant = value; }};
}

template <Duration TransportCosts::*cost>
Parameter<LinkConstants> of_costs(std::string_view key) {
    return {key, ConstantUnit::seconds, start_range,
            [](const LinkConstants& link) { return to_seconds(link.costs.*cost); },
            [](LinkConstants& link, double value) { link.costs.*cost = from_seconds(value); }};
}

std::vector<Parameter<Device>> gemm_parameters() {
    using enum ConstantUnit;
    return {
        of_gemm<&GemmConstants::tile_efficiency>("tile_efficiency", none, {1, tiny, 10}),
        of_gemm<&GemmConstants::tile_half>("tile_half", none, {80, 0, 1e6}),
        of_gemm<&GemmConstants::k_ramp>("k_ramp", none, {100, 0, 1e6}),
        of_gemm<&GemmConstants::wave_quantization>("wave_quantization", none, {0.5, 0, 1}),
        of_gemm<&GemmConstants::cap>("cap", none, efficiency_range),
        of_gemm<&GemmConstants::launch_s>("launch", seconds, start_range),
    };
}

std::vector<Parameter<Device>> memory_parameters() {
    using enum ConstantUnit;
    return {
        of_device<&Device::memory_efficiency>("memory_efficiency", none, efficiency_range),
        of_device<&Device::memory_launch_s>("memory_launch", seconds, start_range),
    };
}

double link_rate(const LinkConstants& link) {
    return static_cast<double>(link.spec.bandwidth.value) * link.spec.efficiency;
}

Parameter<LinkConstants> link_efficiency() {
    return {"efficiency", ConstantUnit::none, efficiency_range,
            [](const LinkConstants& link) { return link.spec.efficiency; },
            [](LinkConstants& link, double value) { link.spec.efficiency = value; }};
}

Parameter<LinkConstants> link_latency() {
    return {"latency", ConstantUnit::seconds, start_range,
            [](const LinkConstants& link) { return to_seconds(link.spec.latency); },
            [](LinkConstants& link, double value) { link.spec.latency = from_seconds(value); }};
}

Parameter<LinkConstants> collective_edge() {
    return {"collective_edge", ConstantUnit::none, Range{0.3, 0, 0.99},
            [](const LinkConstants& link) { return link.costs.collective_edge; },
            [](LinkConstants& link, double value) { link.costs.collective_edge = value; }};
}

// No more than what the link lets through, which is also what no rate at all (0) means.
Parameter<LinkConstants> message_rate(const LinkConstants& base) {
    const double most = link_rate(base);
    return {
        "message_rate", ConstantUnit::bytes_per_second,
        Range{.typical = most, .min = tiny * most, .max = most},
        [](const LinkConstants& link) {
            const auto rate = static_cast<double>(link.costs.message_rate.value);
            return rate > 0 ? std::min(rate, link_rate(link)) : link_rate(link);
        },
        [](LinkConstants& link, double value) { link.costs.message_rate = {std::llround(value)}; }};
}

// With one number of ranks, latency and edge look like start and efficiency.
std::vector<Parameter<LinkConstants>> all_reduce_parameters(bool several_numbers_of_ranks) {
    std::vector<Parameter<LinkConstants>> all{
        of_costs<&TransportCosts::collective_start>("collective_start"),
        of_costs<&TransportCosts::collective_per_sqrt_mib>("collective_per_sqrt_mib"),
        link_efficiency(),
    };
    if (several_numbers_of_ranks) {
        all.push_back(link_latency());
        all.push_back(collective_edge());
    }
    return all;
}

// ---- Fitting

double to_four_digits(double value, double unit) {
    if (value < nothing * unit) return 0;
    const std::string text = fmt::format("{:.3e}", value);
    double rounded = value;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    return rounded;
}

template <class Subject>
double unit_of(const Parameter<Subject>& parameter, const Subject& base) {
    const double value = parameter.get(base);
    return value > 0 ? value : parameter.range.typical;
}

template <class Sample, class Subject>
double mean_log_error(std::span<const Sample> samples, const Subject& subject) {
    double sum = 0;
    for (const Sample& one : samples) sum += std::abs(std::log(time_of(one, subject) / one.time_s));
    return sum / static_cast<double>(samples.size());
}

// A better start, if the base is of another generation: each number in turn tries what is far away.
// From the last to the first, because a cap and a rate show in more samples than a start does.
std::vector<double> scanned(const Objective& objective, std::vector<double> point) {
    constexpr std::array factors{0.35, 0.5, 0.7, 1.4, 2.0, 2.8};
    double best = objective(point);
    for (int sweep = 0; sweep < 2; ++sweep) {
        for (std::size_t i = point.size(); i-- > 0;) {
            double chosen = point[i];
            const double middle = chosen > 0 ? chosen : 1;
            for (const double factor : factors) {
                point[i] = factor * middle;
                const double tried = objective(point);
                if (tried < best) chosen = point[i];
                best = std::min(best, tried);
            }
            point[i] = chosen;
        }
    }
    return point;
}

// The search sees each constant in units of its base value.
template <class Sample, class Subject>
Subject fitted(const std::vector<Sample>& samples, const Kernel<Subject>& kernel,
               const Subject& base) {
    const auto& parameters = kernel.parameters;
    std::vector<double> units, start;
    for (const auto& parameter : parameters) {
        units.push_back(unit_of(parameter, base));
        start.push_back(parameter.get(base) / units.back());
    }
    const auto at = [&](std::span<const double> point, double& outside) {
        Subject subject = base;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const double value = point[i] * units[i];
            const double inside =
                std::clamp(value, parameters[i].range.min, parameters[i].range.max);
            outside += std::abs(value - inside) / units[i];
            parameters[i].set(subject, inside);
        }
        return subject;
    };
    const auto objective = [&](std::span<const double> point) {
        double outside = 0, stretch = 0;
        const Subject subject = at(point, outside);
        for (std::size_t i = 0; i < point.size(); ++i) {
            const double pulled = (point[i] - start[i]) * (point[i] - start[i]);
            stretch += pulled / (1 + pulled);
        }
        return mean_log_error<Sample>(samples, subject) + spring * stretch + outside;
    };
    const std::vector<double> steps(parameters.size(), first_step);
    const Minimum best = nelder_mead(objective, scanned(objective, start), steps);
    double outside = 0;
    Subject subject = at(best.at, outside);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const double value = to_four_digits(parameters[i].get(subject), units[i]);
        parameters[i].set(subject, std::max(value, parameters[i].range.min));
    }
    return subject;
}

/// What predicts a sample.
template <class Subject>
struct Subjects {
    Subject base, fitted;
    std::array<Subject, folds> without_fold;  // fitted on the samples of the others
    std::array<Subject, folds> with_shapes;   // these, and corrected by those samples
};

// Whether the samples' times change when the constant moves a little or goes back to the base's.
template <class Sample, class Subject>
bool is_seen(const std::vector<Sample>& samples, const Parameter<Subject>& parameter,
             const Subjects<Subject>& subjects) {
    const double value = parameter.get(subjects.fitted);
    const double little = unit_of(parameter, subjects.base) / 10;
    for (const double other : {value - little, value + little, parameter.get(subjects.base)}) {
        Subject moved = subjects.fitted;
        parameter.set(moved, std::clamp(other, parameter.range.min, parameter.range.max));
        double change = 0;
        for (const Sample& one : samples) {
            change += std::abs(std::log(time_of(one, moved) / time_of(one, subjects.fitted)));
        }
        if (change > seen_min * static_cast<double>(samples.size())) return true;
    }
    return false;
}

// The fold of each sample. Requires: in order of shape.
template <class Sample>
std::vector<std::uint8_t> fold_of_each(std::span<const Sample> samples, std::size_t& different) {
    std::vector<std::uint8_t> fold(samples.size());
    different = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (i == 0 || shape_of(samples[i]) != shape_of(samples[i - 1])) ++different;
        fold[i] = static_cast<std::uint8_t>((different - 1) % folds);
    }
    return fold;
}

// Of the samples outside a fold (`folds`: of all) at most `fitted_samples_max`, evenly over the
// shapes.
template <class Sample>
std::vector<Sample> some_without(std::size_t left_out, std::span<const Sample> samples,
                                 std::span<const std::uint8_t> fold) {
    const std::size_t others = fold.size() - static_cast<std::size_t>(std::ranges::count(
                                                 fold, static_cast<std::uint8_t>(left_out)));
    const std::size_t wanted = std::min(others, fitted_samples_max);
    std::vector<Sample> some;
    std::size_t passed = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (fold[i] == left_out) continue;
        if ((passed + 1) * wanted / others > passed * wanted / others) some.push_back(samples[i]);
        ++passed;
    }
    return some;
}

// One sample for each shape, batch and layout outside a fold (`folds`: for all), of the median
// time; none of those that are beyond reason. Requires: in order.
std::vector<GemmSample> shapes_without(std::size_t left_out, std::span<const GemmSample> samples,
                                       std::span<const std::uint8_t> fold, const Device& device) {
    std::vector<GemmSample> shapes;
    for (std::size_t first = 0, end = 0; first < samples.size(); first = end) {
        while (end < samples.size() && samples[end].gemm == samples[first].gemm) ++end;
        if (fold[first] == left_out) continue;
        const double low = samples[first + (end - first - 1) / 2].time_s;
        const double high = samples[first + (end - first) / 2].time_s;
        const GemmSample median{samples[first].gemm, (low + high) / 2};
        const double ratio = gemm_ratio(median, device);
        if (ratio * kept_ratio_max < 1 || ratio > kept_ratio_max) continue;
        shapes.push_back(median);
    }
    return shapes;
}

// Of more than a table has, some, evenly.
std::vector<GemmSample> thinned(const std::vector<GemmSample>& shapes) {
    const std::size_t wanted = std::min(shapes.size(), gemm_shapes_max);
    std::vector<GemmSample> some;
    for (std::size_t i = 0; i < wanted; ++i) some.push_back(shapes[i * shapes.size() / wanted]);
    return some;
}

// Whether shapes of other folds are predicted better with the tables, beyond chance: the mean gain
// of a shape against its standard error. Constants fitted on few shapes follow their noise, and a
// table takes some of that back; that alone is no reason to keep one.
bool shapes_help(std::span<const GemmSample> samples, std::span<const std::uint8_t> fold,
                 const Subjects<Device>& subjects) {
    double sum = 0, squares = 0, count = 0;
    for (std::size_t i = 0; i < samples.size();) {
        const auto shape = shape_of(samples[i]);
        double gain = 0, rows = 0;
        for (; i < samples.size() && shape_of(samples[i]) == shape; ++i, ++rows) {
            gain += error_of(samples[i], subjects.without_fold[fold[i]]) -
                    error_of(samples[i], subjects.with_shapes[fold[i]]);
        }
        gain /= rows;
        sum += gain;
        squares += gain * gain;
        ++count;
    }
    const double mean = sum / count, variance = std::max(0.0, squares / count - mean * mean);
    return mean >= shapes_gain_min && mean > sure * std::sqrt(variance / count);
}

void correct_by_shapes(std::span<const GemmSample> samples, std::span<const std::uint8_t> fold,
                       Subjects<Device>& subjects, FitReport& report) {
    report.tries_shapes = true;
    report.shapes = thinned(shapes_without(folds, samples, fold, subjects.fitted));
    for (std::size_t left_out = 0; left_out < folds; ++left_out) {
        Device& device = subjects.with_shapes[left_out];
        device.gemm_residuals =
            gemm_residuals(thinned(shapes_without(left_out, samples, fold, device)), device);
    }
    if (!shapes_help(samples, fold, subjects)) report.shapes.clear();
}
// Only a matrix multiplication has shapes.
template <class Sample, class Subject>
void correct_by_shapes(std::span<const Sample> /*samples*/, std::span<const std::uint8_t> /*fold*/,
                       Subjects<Subject>& /*subjects*/, FitReport& /*report*/) {}

template <class Sample, class Subject>
std::vector<MeanErrors> mean_errors(std::span<const Sample> samples,
                                    std::span<const std::uint8_t> fold,
                                    std::span<const SizeClass> classes,
                                    const Subjects<Subject>& subjects) {
    std::vector<MeanErrors> sums{{.of = "all"}};
    for (const SizeClass& one : classes) sums.push_back({.of = one.name});
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const Sample& one = samples[i];
        const double of_base = error_of(one, subjects.base);
        const double of_fit = error_of(one, subjects.fitted);
        const double of_fold = error_of(one, subjects.without_fold[fold[i]]);
        const double of_shapes = error_of(one, subjects.with_shapes[fold[i]]);
        for (const std::size_t row : {std::size_t{0}, 1 + class_of(size_of(one), classes)}) {
            ++sums[row].samples;
            sums[row].base += of_base;
            sums[row].fitted += of_fit;
            sums[row].cross_validated += of_fold;
            sums[row].with_shapes += of_shapes;
        }
    }
    std::erase_if(sums, [](const MeanErrors& one) { return one.samples == 0; });
    for (MeanErrors& one : sums) {
        const auto count = static_cast<double>(one.samples);
        one.base /= count;
        one.fitted /= count;
        one.cross_validated /= count;
        one.with_shapes /= count;
    }
    return sums;
}

// A constant that no sample depends on goes back to what it was.
template <class Sample, class Subject>
FittedConstant reported(const std::vector<Sample>& samples, const Parameter<Subject>& parameter,
                        Subjects<Subject>& subjects) {
    const bool seen = is_seen(samples, parameter, subjects);
    if (!seen) {
        const double before = parameter.get(subjects.base);
        parameter.set(subjects.fitted, before);
        for (Subject& subject : subjects.without_fold) parameter.set(subject, before);
    }
    const auto [least, most] = std::ranges::minmax(subjects.without_fold, {}, parameter.get);
    return {.key = parameter.key,
            .unit = parameter.unit,
            .base = parameter.get(subjects.base),
            .fitted = parameter.get(subjects.fitted),
            .fold_min = parameter.get(least),
            .fold_max = parameter.get(most),
            .is_seen = seen};
}

// Times in another unit than microseconds are the likeliest mistake, and the worst to fit.
template <class Sample, class Subject>
Result<void> check_rates(std::span<const Sample> samples, const Kernel<Subject>& kernel) {
    std::size_t fast = 0;
    double best = 0;
    for (const Sample& one : samples) {
        const double share = work_of(one) / one.time_s / kernel.sheet_rate;
        if (share > too_fast) ++fast;
        best = std::max(best, share);
    }
    const std::string_view advice =
        "give times in microseconds, sizes in bytes or elements, and the base that was measured";
    if (2 * fast > samples.size()) {
        return problem(
            std::string(kernel.name),
            fmt::format("{} of {} {} rows are more than {} times as fast as {} allows; {}", fast,
                        samples.size(), kernel.name, too_fast, kernel.sheet, advice));
    }
    if (best < too_slow) {
        return problem(std::string(kernel.name),
                       fmt::format("the fastest of {} {} rows reaches {:.2g} % of {}; {}",
                                   samples.size(), kernel.name, 100 * best, kernel.sheet, advice));
    }
    return {};
}

template <class Sample, class Subject>
Result<Fit<Subject>> fit_kernel(std::vector<Sample> samples, const Kernel<Subject>& kernel,
                                const Subject& base) {
    std::ranges::sort(samples, {}, [](const Sample& one) { return order_of(one); });
    FitReport report{.kernel = kernel.name,
                     .different_what = kernel.different,
                     .samples = samples.size(),
                     .different = 0,
                     .constants = {},
                     .errors = {}};
    const std::span<const Sample> all = samples;
    const std::vector<std::uint8_t> fold = fold_of_each(all, report.different);
    const std::size_t needed = shapes_per_constant * kernel.parameters.size();
    if (report.different < needed) {
        return problem(std::string(kernel.name),
                       fmt::format("{} different {} in {} {} rows; to fit {} constants, measure at "
                                   "least {}",
                                   report.different, kernel.different, samples.size(), kernel.name,
                                   kernel.parameters.size(), needed));
    }
    if (const auto sound = check_rates(all, kernel); !sound) return tl::unexpected(sound.error());

    const std::vector<Sample> some = some_without(folds, all, fold);
    Subjects<Subject> subjects{
        .base = base, .fitted = fitted(some, kernel, base), .without_fold = {}, .with_shapes = {}};
    for (std::size_t left_out = 0; left_out < folds; ++left_out) {
        subjects.without_fold[left_out] = fitted(some_without(left_out, all, fold), kernel, base);
    }
    for (const auto& parameter : kernel.parameters) {
        report.constants.push_back(reported(some, parameter, subjects));
    }
    subjects.with_shapes = subjects.without_fold;
    correct_by_shapes(all, fold, subjects, report);
    report.errors = mean_errors(all, fold, kernel.classes, subjects);
    return Fit<Subject>{std::move(subjects.fitted), std::move(report)};
}

std::string link_sheet(const LinkConstants& link) {
    return "a link of " + to_text(link.spec.bandwidth);
}

}  // namespace

double all_reduce_time(std::uint32_t ranks, Bytes bytes, const LinkConstants& link) {
    const double n = ranks, size = static_cast<double>(bytes.value);
    const double rate = link_rate(link) * (1 - link.costs.collective_edge / n);
    constexpr double links_per_step = 2;
    return to_seconds(link.costs.collective_start) +
           to_seconds(link.costs.collective_per_sqrt_mib) * std::sqrt(size / mib) +
           2 * (n - 1) * links_per_step * to_seconds(link.spec.latency) +
           2 * (n - 1) / n * size / rate;
}

double message_time(Bytes bytes, const LinkConstants& link) {
    constexpr double links = 2;
    const auto software_rate = static_cast<double>(link.costs.message_rate.value);
    const double rate =
        software_rate > 0 ? std::min(software_rate, link_rate(link)) : link_rate(link);
    return to_seconds(link.costs.message_overhead) + links * to_seconds(link.spec.latency) +
           static_cast<double>(bytes.value) / rate;
}

Result<Fit<Device>> fit_gemm(std::vector<GemmSample> samples, const Device& base) {
    const Kernel<Device> kernel{.name = "gemm",
                                .different = "shapes",
                                .classes = flop_classes,
                                .sheet_rate = base.peak,
                                .sheet = fmt::format("a peak of {:.4g} TFLOP/s", base.peak * 1e-12),
                                .parameters = gemm_parameters()};
    Device plain = base;
    plain.gemm_residuals.clear();
    auto fit = fit_kernel(std::move(samples), kernel, plain);
    if (fit) fit->constants.gemm_residuals = gemm_residuals(fit->report.shapes, fit->constants);
    return fit;
}

Result<Fit<Device>> fit_memory(std::vector<MemorySample> samples, const Device& base) {
    const Kernel<Device> kernel{
        .name = "memory",
        .different = "sizes",
        .classes = byte_classes,
        .sheet_rate = base.memory_bandwidth,
        .sheet = fmt::format("a memory of {:.4g} GB/s", base.memory_bandwidth * 1e-9),
        .parameters = memory_parameters()};
    return fit_kernel(std::move(samples), kernel, base);
}

Result<Fit<LinkConstants>> fit_all_reduce(std::vector<AllReduceSample> samples,
                                          const LinkConstants& base) {
    const bool several = std::ranges::any_of(samples, [&samples](const AllReduceSample& one) {
        return one.ranks != samples.front().ranks;
    });
    const Kernel<LinkConstants> kernel{.name = "all_reduce",
                                       .different = "sizes",
                                       .classes = byte_classes,
                                       .sheet_rate = static_cast<double>(base.spec.bandwidth.value),
                                       .sheet = link_sheet(base),
                                       .parameters = all_reduce_parameters(several)};
    return fit_kernel(std::move(samples), kernel, base);
}

Result<Fit<LinkConstants>> fit_messages(std::vector<MessageSample> samples,
                                        const LinkConstants& base) {
    const Kernel<LinkConstants> kernel{
        .name = "point_to_point",
        .different = "sizes",
        .classes = byte_classes,
        .sheet_rate = static_cast<double>(base.spec.bandwidth.value),
        .sheet = link_sheet(base),
        .parameters = {of_costs<&TransportCosts::message_overhead>("message_overhead"),
                       message_rate(base)}};
    return fit_kernel(std::move(samples), kernel, base);
}

}  // namespace fourfold
