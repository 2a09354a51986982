#pragma once

// The text that all_reduce_perf and sendrecv_perf of nccl-tests print.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/kernel_table.hpp"
#include "scenarios/table_lines.hpp"

namespace fourfold {

/// Whether a line belongs to the head of such an output.
bool begins_nccl_output(std::string_view line);

/// Takes the lines of a file in order and appends the rows of each run to a table when the run
/// ends. Lines that are none of nccl-tests' (NCCL INFO, a launcher's) are passed over.
class NcclOutput {
  public:
    NcclOutput(KernelTable& table, Findings& findings) : table_(&table), findings_(&findings) {}

    void take(const TableLine& line);
    void end();  // of the file

  private:
    struct Row {
        Bytes bytes{};
        double time_s = 0;
        double algorithm_bandwidth = 0, bus_bandwidth = 0;  // GB/s
    };
    struct Columns {
        std::size_t count = 0, size = 0, time = 0, algbw = 0, busbw = 0;
        std::optional<std::size_t> operation, root;
        std::vector<std::size_t> wrong;  // out of place, in place
    };
    /// What one start of the program printed.
    struct Run {
        std::set<std::uint64_t> ranks;
        std::set<std::string, std::less<>> hosts;
        std::string test;  // its name, where it is printed
        std::optional<Columns> columns;
        std::vector<Row> rows;
        std::string first_row;  // for messages
        int first_row_number = 0;
        bool in_place_unchecked = false;  // as sendrecv_perf, which does not work in place
        bool rooted = false;              // a broadcast or a reduce
        bool spoilt = false;              // what is wrong is reported
    };
    enum class Test { all_reduce, sendrecv, other };

    void take_head(const TableLine& line);
    void take_rank(std::string_view line);
    void take_row(const TableLine& line);
    void finish_run();
    [[nodiscard]] Test test_of(const Run& run) const;

    KernelTable* table_;  // the caller's, as are the findings
    Findings* findings_;
    Run run_;
    std::vector<std::string_view> words_;
};

}  // namespace fourfold
