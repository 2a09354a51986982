#pragma once

// Tables of measured kernels, as calibrate reads them. The first lines tell which of four kinds a
// file is:
//
//     kernel,m,n,k,batch,bytes,ranks,time_us     ours; columns in any order, those that no row
//     gemm,4096,4096,4096,1,,,620.4              needs may be missing, others are left alone; a
//     memory,,,,,1073741824,,640.1               column `device` may name what was measured, and
//     all_reduce,,,,,67108864,8,520.3            `layout` a gemm's operands: tn as in a linear
//     layer, point_to_point,,,,,67108864,,480.9          nn as its input's gradient, nt as its
//     weights'
//
//     system,op,peak_tflops,shape,efficiency     SimuMax: rows of op matmul
//     device,gpus,bytes,time_us                  vTrain: all-reduces
//     # nThread 1 nGpus 8 minBytes ...           the output of all_reduce_perf or sendrecv_perf
//                                                (nccl-tests), one run after another if there are
//                                                several
//
// Lines that begin with '#' are comments in the first three.

#include <cstddef>
#include <istream>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "results/calibrate.hpp"
#include "scenarios/diagnostic.hpp"

namespace fourfold {

struct KernelTable {
    std::string file;
    std::string device;  // whose rows these are, where the file says so
    std::vector<GemmSample> gemm;
    std::vector<MemorySample> memory;
    std::vector<AllReduceSample> all_reduce;
    std::vector<MessageSample> point_to_point;
    std::size_t others = 0;  // rows of kernels that are not calibrated
};

/// Reads line by line; memory for the rows only. `only` lists devices: of a file that names some,
/// the rows of the one that is listed. An empty list is enough where a file has one device. Reports
/// all that is wrong, the first 50 in words.
tl::expected<KernelTable, Diagnostics> read_kernel_table(std::istream& text,
                                                         const std::string& file,
                                                         const std::vector<std::string>& only);

/// The same of the file itself.
tl::expected<KernelTable, Diagnostics> read_kernel_table(const std::string& file,
                                                         const std::vector<std::string>& only);

}  // namespace fourfold
