#include "results/ring_curves.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "results/curves.hpp"

namespace fourfold {
namespace {

struct Look {
    std::string_view algorithm, colour;
};
// Colours that colour-blind readers tell apart (Okabe and Ito 2008, "Color universal design").
constexpr Look looks[] = {
    {"ring", "#0072B2"}, {"tree", "#009E73"}, {"direct", "#E69F00"}, {"central", "#D55E00"}};

std::string_view colour_of(std::string_view algorithm) {
    const auto look = std::find_if(std::begin(looks), std::end(looks), [&](const Look& candidate) {
        return candidate.algorithm == algorithm;
    });
    return look == std::end(looks) ? "#CC79A7" : look->colour;
}

// Zero does not exist on a logarithmic axis: a lone rank has no point there.
void write_lines(std::ostream& out, std::span<const std::string_view> algorithms, int column,
                 std::string_view scale) {
    for (const std::string_view algorithm : algorithms) {
        out << fmt::format(
            "        'ring.csv' using (is({0}) ? $2 : NaN):(positive(${1}){2}) "
            "with lines lw {4} lc rgb '{3}' title {0}, \\\n",
            gnuplot_text(algorithm), column, scale, colour_of(algorithm),
            algorithm == "ring" ? 5 : 2);  // wide: others run over it
    }
}

}  // namespace

Result<std::vector<RingRow>> ring_curves(const RingQuestion& question) {
    std::vector<RingRow> rows;
    for (const Algorithm* algorithm : question.algorithms) {
        for (const std::uint32_t ranks : question.ranks) {
            const Result<CollectiveRun> run = run_collective({.kind = question.kind,
                                                              .algorithm = algorithm,
                                                              .ranks = ranks,
                                                              .bytes = question.bytes,
                                                              .root = 0,
                                                              .network = question.network,
                                                              .links = question.links,
                                                              .start = {},
                                                              .audit = false});
            if (!run) return tl::unexpected(run.error());
            rows.push_back({.algorithm = run->algorithm,
                            .ranks = ranks,
                            .time = run->time,
                            .closed_form = run->closed_form,
                            .bound = run->bound,
                            .bus_bandwidth = run->bus_bandwidth,
                            .messages = run->messages});
        }
    }
    return rows;
}

void write_ring_csv(std::ostream& out, std::span<const RingRow> rows) {
    out << "algorithm,ranks,time_s,closed_form_s,bound_s,busbw_bytes_per_s,messages\n";
    for (const RingRow& row : rows) {
        out << fmt::format(
            "{},{},{},{},{},{},{}\n", csv_field(row.algorithm), row.ranks, exact_seconds(row.time),
            row.closed_form ? exact_seconds(*row.closed_form) : std::string(),
            exact_seconds(row.bound), twelve_digits(row.bus_bandwidth), row.messages);
    }
}

void write_ring_gnuplot(std::ostream& out, const RingQuestion& question,
                        std::span<const RingRow> rows) {
    std::vector<std::string_view> algorithms;
    for (const RingRow& row : rows) {
        if (std::find(algorithms.begin(), algorithms.end(), row.algorithm) == algorithms.end()) {
            algorithms.push_back(row.algorithm);
        }
    }
    const std::string title = fmt::format(
        "{} of {}, {} of {} and {} per link", name_of(question.kind), to_text(question.bytes),
        question.network.shape->name, to_text(question.network.link.bandwidth),
        to_text(question.network.link.latency));
    out << fmt::format(
        R"(# Time of a collective by number of ranks. Run it where ring.csv is: gnuplot ring.gp
# Columns: 1 algorithm, 2 ranks, 3 time_s, 4 closed_form_s, 5 bound_s, 6 busbw_bytes_per_s

set datafile separator comma
set datafile missing NaN
set encoding utf8

is(algorithm) = strcol(1) eq algorithm
positive(x) = x > 0 ? x : NaN

do for [picture = 1:2] {{
    if (picture == 1) {{
        set terminal svg size 1160,520 dynamic background rgb 'white' font 'Helvetica,13'
        set output 'ring.svg'
    }} else {{
        set terminal pngcairo size 1160,520 font 'Helvetica,11'
        set output 'ring.png'
    }}
    set multiplot layout 1,2 title {} noenhanced font ',16'
    set logscale xy
    set logscale x 2
    set xlabel 'ranks'
    set grid lc rgb '#dddddd'
    set border 3
    set tics nomirror out
    set key top left reverse Left samplen 2 noenhanced

    set title 'Nobody is in charge in a ring, and that is why it scales'
    set ylabel 'time (ms)'
    plot \
)",
        gnuplot_text(title));
    write_lines(out, algorithms, 3, " * 1000");
    for (const std::string_view algorithm : algorithms) {
        out << fmt::format(
            "        'ring.csv' using (is({}) ? $2 : NaN):(positive($4) * 1000) "
            "with points pt 6 ps 0.8 lw 1.5 lc rgb '{}' notitle, \\\n",
            gnuplot_text(algorithm), colour_of(algorithm));
    }
    out << "        NaN with points pt 6 ps 0.8 lw 1.5 lc rgb '#555555' title 'closed form', \\\n";
    if (!algorithms.empty()) {
        out << fmt::format(
            "        'ring.csv' using (is({}) ? $2 : NaN):(positive($5) * 1000) "
            "with lines lw 1 dt 2 lc rgb '#888888' title 'bandwidth bound'\n",
            gnuplot_text(algorithms.front()));
    } else {
        out << "        NaN notitle\n";
    }
    out << R"(
    set title 'What is left of each port'
    set ylabel 'bus bandwidth (GB/s)'
    set key bottom left
    plot \
)";
    write_lines(out, algorithms, 6, " / 1e9");
    out << fmt::format("        {:.6g} with lines lw 1 dt 2 lc rgb '#888888' title 'port'\n",
                       static_cast<double>(question.network.link.bandwidth.value) *
                           question.network.link.efficiency / 1e9);
    out << R"(    unset multiplot
    unset output
}
)";
}

}  // namespace fourfold
