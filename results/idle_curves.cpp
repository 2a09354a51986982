#include "results/idle_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "results/curves.hpp"
#include "sim/simulate.hpp"
#include "topology/check.hpp"
#include "topology/cluster.hpp"
#include "workloads/lower.hpp"

// Each point is a run of the event engine on `pipeline` devices in a ring, so that every two that
// exchange messages are one link apart; messages have no bytes and take the hop's latency.

namespace fourfold {
namespace {

constexpr double limit = 0.10;  // the idle fraction that people ask to stay below

Duration ceil_div(Duration duration, std::int64_t parts) {
    return Duration((duration.count() + parts - 1) / parts);
}

ChunkTimes chunk_times(const IdleQuestion& question, std::uint32_t chunks) {
    return {.forward = ceil_div(question.forward, chunks),
            .input_gradient = ceil_div(question.input_gradient, chunks),
            .weight_gradient = ceil_div(question.weight_gradient, chunks),
            .hop = question.hop_latency};
}

Result<Graph> ring_of(std::uint32_t ranks, Duration latency) {
    const auto shape = find_shape("ring");
    FOURFOLD_CHECK(shape);
    const Fabric hops{.shape = *shape,
                      .link = {.bandwidth = 1_GBps, .latency = latency, .efficiency = 1.0},
                      .parameters = {}};
    const auto draft =
        build_cluster({.nodes = 1, .devices_per_node = ranks, .node = hops, .fabric = {}});
    if (!draft) return tl::unexpected(draft.error());
    return seal(*draft);
}

// One formula for the simulated and for the closed form, so that equal makespans differ by 0. The
// sum is exact; only the last division rounds.
double idle_fraction(Duration busy, std::uint32_t ranks, Duration makespan) {
    __extension__ using Wide = __int128;
    const Wide capacity = Wide{makespan.count()} * ranks;
    if (capacity == 0) return 0;
    return static_cast<double>(capacity - busy.count()) / static_cast<double>(capacity);
}

struct Spans {
    Duration busy{}, makespan{}, longest{};
};

Spans measure_spans(const Lowered& lowered, const Timeline& timeline, std::uint32_t ranks) {
    Spans found;
    std::vector<Time> first(ranks, Time::max()), last(ranks);
    for (const TaskId task : timeline.begin.keys()) {
        if (lowered.program.kind(task) != TaskKind::compute) continue;
        const std::uint32_t rank = lowered.program.device(task).value;
        found.busy += timeline.end[task] - timeline.begin[task];
        first[rank] = std::min(first[rank], timeline.begin[task]);
        last[rank] = std::max(last[rank], timeline.end[task]);
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        found.makespan = std::max(found.makespan, last[rank].time_since_epoch());
        found.longest = std::max(found.longest, last[rank] - first[rank]);
    }
    return found;
}

Result<IdleRow> run_point(const IdleQuestion& question, const Schedule& schedule,
                          const PipelineShape& shape, const Graph& ring) {
    IdleRow row;
    row.schedule = schedule.name;
    row.shape = shape;
    if (const auto reason = schedule.refuse(shape)) {
        row.refused = *reason;
        return row;
    }
    const ChunkTimes times = chunk_times(question, shape.chunks);
    const Result<Lowered> lowered = lower_pipeline(schedule, shape, times, ring);
    if (!lowered) return tl::unexpected(lowered.error());
    const Result<Timeline> timeline = simulate(ring, lowered->program, {});
    if (!timeline) return tl::unexpected(timeline.error());

    const Spans spans = measure_spans(*lowered, *timeline, shape.ranks);
    row.makespan = spans.makespan;
    row.max_rank_span = spans.longest;
    row.ideal = (question.forward + question.input_gradient + question.weight_gradient) *
                std::int64_t{shape.micro_batches};
    row.idle_fraction = idle_fraction(spans.busy, shape.ranks, spans.makespan);
    if (const auto makespan = schedule.makespan(shape, times)) {
        const Duration chunk = times.forward + times.input_gradient + times.weight_gradient;
        const Duration busy =
            chunk * (std::int64_t{shape.ranks} * shape.chunks * shape.micro_batches);
        row.closed_form_idle = idle_fraction(busy, shape.ranks, *makespan);
        row.difference = row.idle_fraction - *row.closed_form_idle;
    }
    return row;
}

Result<void> check(const IdleQuestion& question) {
    for (const auto& [name, duration] : {std::pair{"forward", question.forward},
                                         {"input_gradient", question.input_gradient},
                                         {"weight_gradient", question.weight_gradient},
                                         {"hop_latency", question.hop_latency}}) {
        if (duration < Duration::zero()) {
            return problem(name, fmt::format("{} is less than nothing", to_text(duration)));
        }
        // So that sums over any schedule of 2^32 actions fit 64 bits.
        if (duration > duration_limit / (std::int64_t{1} << 24)) {
            return problem(name, fmt::format("{} is too long for a curve", to_text(duration)));
        }
    }
    return {};
}

// ---- The picture

struct Line {
    std::size_t first = 0, last = 0;  // its rows in idle.csv, counted from 0
    std::vector<IdleRow> rows;        // without those that are refused
};

struct Panel {
    std::string_view schedule;
    std::uint32_t chunks;
    std::map<std::uint32_t, Line> lines;  // by depth
};

std::vector<Panel> panels_of(std::span<const IdleRow> rows) {
    std::vector<Panel> panels;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const IdleRow& row = rows[i];
        if (!row.refused.empty()) continue;
        auto found = std::find_if(panels.begin(), panels.end(), [&](const Panel& panel) {
            return panel.schedule == row.schedule && panel.chunks == row.shape.chunks;
        });
        if (found == panels.end()) {
            panels.push_back({row.schedule, row.shape.chunks, {}});
            found = panels.end() - 1;
        }
        const auto [line, is_new] = found->lines.try_emplace(row.shape.ranks);
        if (is_new) line->second.first = i;
        line->second.last = i;
        line->second.rows.push_back(row);
    }
    return panels;
}

// Colours that colour-blind readers tell apart (Okabe and Ito 2008, "Color universal design").
constexpr std::string_view colours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                        "#E69F00", "#56B4E9", "#000000"};

std::string batch_text(std::span<const IdleRow> line) {
    if (const auto batch = batch_below(line, limit)) return fmt::format("{}", *batch);
    std::uint32_t most = 0;
    for (const IdleRow& row : line) most = std::max(most, row.shape.micro_batches);
    return fmt::format("more than {}", most);
}

void write_panel(std::ostream& out, const Panel& panel) {
    const std::string title = panel.chunks == 1
                                  ? std::string(panel.schedule)
                                  : fmt::format("{}, {} chunks", panel.schedule, panel.chunks);
    out << fmt::format("    set title {} noenhanced font ',15'\n    plot \\\n",
                       gnuplot_text(title));
    std::size_t colour = 0;
    bool has_closed_form = false;
    for (const auto& [ranks, line] : panel.lines) {
        // Gnuplot reads the rows that a curve is made of, and no others: the file may be long.
        const std::string rows = fmt::format("skip 1 every ::{}::{}", line.first, line.last);
        const std::string_view hue = colours[colour++ % std::size(colours)];
        const bool known = std::any_of(line.rows.begin(), line.rows.end(), [](const IdleRow& row) {
            return row.closed_form_idle.has_value();
        });
        has_closed_form = has_closed_form || known;
        out << fmt::format(
            "        'idle.csv' {} using 4:(100 * $7) "
            "with lines lw 2 lc rgb '{}' title '{}: {}', \\\n",
            rows, hue, ranks, batch_text(line.rows));
        if (!known) continue;
        out << fmt::format(
            "        'idle.csv' {} using (sparse($4)):(100 * $8) "
            "with points pt 6 ps 0.7 lw 1.5 lc rgb '{}' notitle, \\\n",
            rows, hue);
    }
    if (has_closed_form) {
        out << "        NaN with points pt 6 ps 0.7 lw 1.5 lc rgb '#555555' title 'closed form', "
               "\\\n";
    }
    out << "        10 with lines lw 1 dt 2 lc rgb '#888888' title '10 %'\n";
}

}  // namespace

Result<std::vector<IdleRow>> idle_curves(const IdleQuestion& question) {
    if (auto fine = check(question); !fine) return tl::unexpected(fine.error());
    std::map<std::uint32_t, Graph> rings;
    std::vector<IdleRow> rows;
    for (const Schedule* schedule : question.schedules) {
        for (const std::uint32_t chunks : question.chunks) {
            for (const std::uint32_t ranks : question.pipeline) {
                if (ranks > 0 && !rings.contains(ranks)) {
                    Result<Graph> ring = ring_of(ranks, question.hop_latency);
                    if (!ring) return problem("pipeline", ring.error().what);
                    rings.emplace(ranks, std::move(*ring));
                }
                for (const std::uint32_t micro_batches : question.micro_batches) {
                    Result<IdleRow> row = run_point(
                        question, *schedule,
                        {.ranks = ranks, .chunks = chunks, .micro_batches = micro_batches},
                        rings[ranks]);
                    if (!row) return tl::unexpected(row.error());
                    rows.push_back(std::move(*row));
                }
            }
        }
    }
    return rows;
}

void write_idle_csv(std::ostream& out, std::span<const IdleRow> rows) {
    out << "schedule,pipeline,chunks,micro_batches,makespan_s,ideal_s,idle_fraction,"
           "closed_form_idle,difference,max_rank_span_s,refused\n";
    const auto optional = [](const std::optional<double>& value) {
        return value ? twelve_digits(*value) : std::string();
    };
    for (const IdleRow& row : rows) {
        out << fmt::format("{},{},{},{},", csv_field(row.schedule), row.shape.ranks,
                           row.shape.chunks, row.shape.micro_batches);
        if (!row.refused.empty()) {
            out << fmt::format(",,,,,,{}\n", csv_field(row.refused));
            continue;
        }
        out << fmt::format("{},{},{},{},{},{},\n", exact_seconds(row.makespan),
                           exact_seconds(row.ideal), twelve_digits(row.idle_fraction),
                           optional(row.closed_form_idle), optional(row.difference),
                           exact_seconds(row.max_rank_span));
    }
}

std::optional<std::uint32_t> batch_below(std::span<const IdleRow> rows, double most) {
    std::vector<const IdleRow*> order;
    for (const IdleRow& row : rows) {
        if (row.refused.empty()) order.push_back(&row);
    }
    std::stable_sort(order.begin(), order.end(), [](const IdleRow* a, const IdleRow* b) {
        return a->shape.micro_batches > b->shape.micro_batches;
    });
    std::optional<std::uint32_t> found;
    for (const IdleRow* row : order) {
        if (row->idle_fraction >= most) break;
        found = row->shape.micro_batches;
    }
    return found;
}

void write_idle_gnuplot(std::ostream& out, std::span<const IdleRow> rows) {
    const std::vector<Panel> panels = panels_of(rows);
    std::uint32_t least = 1, most = 2;
    if (!rows.empty()) least = rows.front().shape.micro_batches;
    for (const IdleRow& row : rows) {
        least = std::min(least, row.shape.micro_batches);
        most = std::max(most, row.shape.micro_batches);
    }
    const std::size_t columns = panels.size() < 2 ? 1 : panels.size() < 5 ? 2 : 3;
    const std::size_t lines = std::max<std::size_t>(1, (panels.size() + columns - 1) / columns);
    const std::size_t width = 620 * columns, height = 420 * lines + 40;
    out << fmt::format(
        R"(# Idle fraction of pipeline schedules. Run it where idle.csv is: gnuplot idle.gp
# Columns: 1 schedule, 2 pipeline, 3 chunks, 4 micro_batches, 7 idle_fraction, 8 closed_form_idle

set datafile separator comma
set datafile missing NaN
set encoding utf8

# Of a curve's points, those that stand apart on a logarithmic axis: powers of 2, and 3 times them.
power(m) = m & (m - 1)
sparse(m) = power(int(m)) == 0 || (int(m) % 3 == 0 && power(int(m) / 3) == 0) ? m : NaN

do for [picture = 1:2] {{
    if (picture == 1) {{
        set terminal svg size {0},{1} dynamic background rgb 'white' font 'Helvetica,13'
        set output 'idle.svg'
    }} else {{
        set terminal pngcairo size {0},{1} font 'Helvetica,11'
        set output 'idle.png'
    }}
    set multiplot layout {2},{3} title 'Idle fraction of a pipeline: lines simulated, circles closed form' font ',16'
    set logscale x 2
    set xlabel 'micro-batches'
    set ylabel 'idle (%)'
    set yrange [0:100]
    set ytics 10
    set grid lc rgb '#dddddd'
    set border 3
    set tics nomirror out
    set xrange [{4}:{5}]
    set key outside right center reverse Left samplen 1.5 title "ranks: batch\nfor idle < 10 %"
)",
        width, height, lines, columns, least, most);
    for (const Panel& panel : panels) write_panel(out, panel);
    out << R"(    unset multiplot
    unset output
}
)";
}

}  // namespace fourfold
