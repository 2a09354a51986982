#include "scenarios/nccl_table.hpp"

// A run prints who takes part, names its columns, and then a row for each size (nccl-tests 2.0 to
// 2.18; older versions leave out `Group`, `redop` and `root`):
//
//     # Collective test starting: all_reduce_perf                          since 2.17 only
//     # nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) ...
//     #  Rank  0 Group  0 Pid 37300 on node126 device  0 [0000:05:00] AMD Instinct MI300X
//     #                                                     out-of-place           in-place
//     #    size   count   type  redop  root    time  algbw  busbw #wrong   time  algbw  busbw
//     #wrong
//          8192    2048  float    sum    -1   18.66   0.44   0.77      0  17.95   0.46   0.80 0
//
// Where the name is missing, the bus bandwidth tells which test it was: nccl-tests defines it as
// algbw times 2 (n - 1) / n for an all-reduce, times 1 for sendrecv (its doc/PERFORMANCE.md). On
// two ranks that is the same; then sendrecv is told by its in-place column, which is never checked.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "scenarios/kernel_cells.hpp"

namespace fourfold {
namespace {

constexpr std::string_view not_checked = "N/A";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The word after `key`, or nothing.
std::string_view word_after(std::string_view text, std::string_view key) {
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + key.size());
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return text.substr(0, text.find(' '));
}

// Printed with two decimals, so that little of a small bandwidth is left.
bool is_about(double printed, double expected) {
    constexpr double rounding = 0.01;
    return std::abs(printed - expected) <= 0.02 * expected + 2 * rounding;
}

}  // namespace

bool begins_nccl_output(std::string_view line) {
    if (!line.starts_with('#')) return false;
    return line.find("nThread") != std::string_view::npos ||
           line.find("Collective test starting:") != std::string_view::npos;
}

void NcclOutput::take(const TableLine& line) {
    const std::size_t begin = line.text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return;
    if (line.text[begin] == '#') return take_head(line);
    if (is_digit(line.text[begin])) take_row(line);
}

void NcclOutput::end() { finish_run(); }

void NcclOutput::take_head(const TableLine& line) {
    // The head of a run begins with its name or with its threads, and has rows before it only if
    // another run does.
    if (begins_nccl_output(line.text) && run_.columns) finish_run();
    if (const auto test = word_after(line.text, "Collective test starting:"); !test.empty()) {
        run_.test = test;
        const bool known = test.find("all_reduce") != std::string_view::npos ||
                           test.find("sendrecv") != std::string_view::npos;
        if (!known) {
            findings_->error(line, test,
                             fmt::format("{} is not calibrated; give the output of all_reduce_perf "
                                         "or sendrecv_perf",
                                         test));
            run_.spoilt = true;
        }
    }
    split_at_spaces(line.text.substr(line.text.find('#') + 1), words_);
    if (words_.size() > 1 && words_[0] == "Rank") return take_rank(line.text);
    if (words_.size() < 4 || words_[0] != "size" || words_[1] != "count") return;

    Columns columns;
    columns.count = words_.size();
    const auto column = [this](std::string_view name) {
        return static_cast<std::size_t>(std::ranges::find(words_, name) - words_.begin());
    };
    columns.size = column("size");
    columns.time = column("time");
    columns.algbw = column("algbw");
    columns.busbw = column("busbw");
    if (std::max({columns.time, columns.algbw, columns.busbw}) == words_.size()) return;
    if (column("redop") < words_.size()) columns.operation = column("redop");
    if (column("root") < words_.size()) columns.root = column("root");
    for (std::size_t i = 0; i < words_.size(); ++i) {
        if (words_[i] == "#wrong" || words_[i] == "error") columns.wrong.push_back(i);
    }
    run_.columns = columns;
}

void NcclOutput::take_rank(std::string_view line) {
    // "Group 1" and so on are other communicators, which do the same at the same time.
    const std::string_view group = word_after(line, " Group ");
    if (!group.empty() && group != "0") return;
    std::uint64_t rank = 0;
    const std::string_view text = word_after(line, " Rank ");
    std::from_chars(text.data(), text.data() + text.size(), rank);
    run_.ranks.insert(rank);
    run_.hosts.emplace(word_after(line, " on "));
}

void NcclOutput::take_row(const TableLine& line) {
    if (run_.spoilt) return;
    split_at_spaces(line.text, words_);
    if (!run_.columns || run_.ranks.empty()) {
        findings_->error(line, words_.front(),
                         fmt::format("no '# {}' line before this row; copy the whole output",
                                     run_.columns ? "Rank" : "size count ... time"));
        run_.spoilt = true;
        return;
    }
    const Columns& columns = *run_.columns;
    if (words_.size() < columns.count) {
        findings_->error(line, words_.back(),
                         fmt::format("{} of {} columns; {}", words_.size(), columns.count,
                                     line.ended ? "copy the line again, or remove it"
                                                : "the file ends in the middle of this line"));
        return;
    }
    if (words_[columns.size] == "0") return;  // says nothing of a message
    const auto bytes = read_count(line, {"size", words_[columns.size]}, 1, *findings_);
    const auto time = read_time(line, {"time", words_[columns.time]}, *findings_);
    if (!bytes || !time) return;
    Row row{.bytes = {*bytes}, .time_s = *time};
    const auto bandwidth = [this](std::size_t index) {
        double value = 0;
        const std::string_view text = words_[index];
        std::from_chars(text.data(), text.data() + text.size(), value);
        return value;
    };
    row.algorithm_bandwidth = bandwidth(columns.algbw);
    row.bus_bandwidth = bandwidth(columns.busbw);
    if (run_.rows.empty()) {
        run_.first_row = line.text;
        run_.first_row_number = line.number;
    }
    run_.rows.push_back(row);
    run_.in_place_unchecked = columns.wrong.size() == 2 &&
                              words_[columns.wrong[0]] != not_checked &&
                              words_[columns.wrong[1]] == not_checked;
    run_.rooted = (columns.root && words_[*columns.root] != "-1") ||
                  (columns.operation && words_[*columns.operation] == "none");
}

NcclOutput::Test NcclOutput::test_of(const Run& run) const {
    if (run.test.find("all_reduce") != std::string::npos) return Test::all_reduce;
    if (run.test.find("sendrecv") != std::string::npos) return Test::sendrecv;
    if (run.rooted) return Test::other;
    const Row& fastest = *std::ranges::max_element(run.rows, {}, &Row::algorithm_bandwidth);
    const auto n = static_cast<double>(run.ranks.size());
    const double algbw = fastest.algorithm_bandwidth, busbw = fastest.bus_bandwidth;
    const bool as_sendrecv = is_about(busbw, algbw);
    const bool as_all_reduce = is_about(busbw, algbw * 2 * (n - 1) / n);
    if (as_sendrecv && as_all_reduce) {
        const bool old_sendrecv = !run.columns->operation;
        return run.in_place_unchecked || old_sendrecv ? Test::sendrecv : Test::all_reduce;
    }
    if (as_sendrecv) return Test::sendrecv;
    return as_all_reduce ? Test::all_reduce : Test::other;
}

void NcclOutput::finish_run() {
    const Run run = std::exchange(run_, {});
    if (run.spoilt || run.rows.empty()) return;
    const TableLine first{.number = run.first_row_number, .text = run.first_row};
    const auto refuse = [&](const std::string& message) {
        findings_->error(first, first.text.substr(first.text.find_first_not_of(" \t")), message);
    };
    const std::size_t ranks = run.ranks.size(), hosts = run.hosts.size();
    if (ranks < 2)
        return refuse("the rows of one rank, which sends nothing; run it on two or more");
    if (hosts > 1 && hosts < ranks) {
        return refuse(
            fmt::format("the rows of {} ranks on {} hosts mix two kinds of links; run it "
                        "on one host, or with one rank on each",
                        ranks, hosts));
    }
    switch (test_of(run)) {
        case Test::all_reduce:
            for (const Row& row : run.rows) {
                table_->all_reduce.push_back(
                    {static_cast<std::uint32_t>(ranks), row.bytes, row.time_s});
            }
            return;
        case Test::sendrecv:
            for (const Row& row : run.rows) {
                table_->point_to_point.push_back({row.bytes, row.time_s});
            }
            return;
        case Test::other:
            return refuse(
                fmt::format("on {} ranks this is not the bus bandwidth of all_reduce_perf "
                            "or sendrecv_perf; no other test is calibrated",
                            ranks));
    }
}

}  // namespace fourfold
