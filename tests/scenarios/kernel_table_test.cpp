#include "scenarios/kernel_table.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.hpp"

namespace fourfold {
namespace {

KernelTable read(const std::string& text, const std::vector<std::string>& only = {}) {
    std::istringstream stream(text);
    auto table = read_kernel_table(stream, "t.csv", only);
    REQUIRE_MESSAGE(table.has_value(), (table ? "" : to_text(table.error())));
    return std::move(*table);
}

/// The whole text that a user gets.
std::string errors(const std::string& text, const std::vector<std::string>& only = {}) {
    std::istringstream stream(text);
    const auto table = read_kernel_table(stream, "t.csv", only);
    REQUIRE_FALSE(table.has_value());
    return to_text(table.error());
}

const std::string header = "kernel,m,n,k,batch,bytes,ranks,time_us\n";

// As nccl-tests 2.13 to 2.16 print it.
std::string nccl_head(int ranks, const std::string& host_of_odd = "node1") {
    std::string text =
        "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: "
        "20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n";
    for (int rank = 0; rank < ranks; ++rank) {
        text += "#  Rank  " + std::to_string(rank) + " Group  0 Pid  37300 on   " +
                (rank % 2 == 1 ? host_of_odd : "node1") +
                " device  0 [0x05] NVIDIA A100-SXM4-80GB\n";
    }
    return text +
           "#\n"
           "#                                               out-of-place             in-place\n"
           "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw "
           "#wrong\n"
           "#   (B)  (elements)               (us)  (GB/s)  (GB/s)          (us)  (GB/s)  (GB/s)\n";
}

}  // namespace

TEST_CASE("Our table has a column kernel, columns in any order, a batch or none") {
    const KernelTable table = read(
        "# measured last week\n"
        "kernel,time_us, m ,n,k,note,bytes,ranks\n"
        "gemm,620.5,4096,2048,1024,first,,\n"
        "\n"
        "memory,640,,,,,1073741824,\n"
        "\"all_reduce\",520.25,,,,\"\",67108864,8\n"
        "# a comment\n"
        "point_to_point,1.5e3,,,,,65536.0,\n");
    CHECK(table.file == "t.csv");
    CHECK(table.device.empty());
    CHECK(table.others == 0);
    REQUIRE(table.gemm.size() == 1);
    CHECK(table.gemm[0].gemm.m == 4096);
    CHECK(table.gemm[0].gemm.n == 2048);
    CHECK(table.gemm[0].gemm.k == 1024);
    CHECK(table.gemm[0].gemm.batch == 1);
    CHECK(table.gemm[0].time_s == doctest::Approx(620.5e-6));
    REQUIRE(table.memory.size() == 1);
    CHECK(table.memory[0].bytes.value == 1 << 30);
    REQUIRE(table.all_reduce.size() == 1);
    CHECK(table.all_reduce[0].ranks == 8);
    CHECK(table.all_reduce[0].bytes.value == 64 << 20);
    CHECK(table.all_reduce[0].time_s == doctest::Approx(520.25e-6));
    REQUIRE(table.point_to_point.size() == 1);
    CHECK(table.point_to_point[0].bytes.value == 65'536);
    CHECK(table.point_to_point[0].time_s == doctest::Approx(1.5e-3));

    CHECK(read(header + "gemm,64,64,64,32,,,9").gemm[0].gemm.batch == 32);
    CHECK(table.gemm[0].gemm.layout == GemmLayout::any);
    const KernelTable layouts = read(
        "kernel,m,n,k,layout,time_us\n"
        "gemm,64,64,64,nt,9\n"
        "gemm,64,64,64,TN,9\n"
        "gemm,64,64,64,,9\n");
    CHECK(layouts.gemm[0].gemm.layout == GemmLayout::nt);
    CHECK(layouts.gemm[1].gemm.layout == GemmLayout::tn);
    CHECK(layouts.gemm[2].gemm.layout == GemmLayout::any);
    CHECK(errors("kernel,m,n,k,layout,time_us\n"
                 "gemm,64,64,64,tt,9\n"
                 "gemm,64,64,64,row,9\n") ==
          "t.csv:2:15: error: unknown layout 'tt'; did you mean 'tn'?\n"
          "    gemm,64,64,64,tt,9\n"
          "                  ^\n"
          "t.csv:3:15: error: unknown layout 'row'; known: any, tn, nn, nt\n"
          "    gemm,64,64,64,row,9\n"
          "                  ^\n");
    CHECK(read("\xEF\xBB\xBFkernel,bytes,time_us\r\nmemory,64,9\r\n").memory.size() == 1);
}

TEST_CASE("Of SimuMax's table the rows of op matmul are taken, as times") {
    const KernelTable table = read(
        "# measured kernel efficiency\n"
        "system,op,peak_tflops,shape,efficiency\n"
        "a100,matmul,312,b=2  m=4096  k=5120  n=1536  layout=TN  accumulate=False,0.5\n"
        "a100,sdp_fwd,312,batch=1  seq=4096,0.5\n");
    REQUIRE(table.gemm.size() == 1);
    CHECK(table.gemm[0].gemm.m == 4096);
    CHECK(table.gemm[0].gemm.k == 5120);
    CHECK(table.gemm[0].gemm.n == 1536);
    CHECK(table.gemm[0].gemm.batch == 2);
    CHECK(table.gemm[0].time_s == doctest::Approx(2.0 * 2 * 4096 * 5120 * 1536 / (0.5 * 312e12)));
    CHECK(table.others == 1);
    CHECK(table.device == "a100");
}

TEST_CASE("vTrain's table is one of all-reduces, of which --only chooses a device") {
    const std::string text =
        "device,gpus,bytes,time_us,busbw_gbs\n"
        "a100,2,1048576,44.21,23.72\n"
        "v100,2,1048576,80,23.72\n"
        "a100,8,2097152,53.43,39.25\n";
    const KernelTable table = read(text, {"a100"});
    REQUIRE(table.all_reduce.size() == 2);
    CHECK(table.all_reduce[1].ranks == 8);
    CHECK(table.all_reduce[1].bytes.value == 2 << 20);
    CHECK(table.device == "a100");
    // The list may name devices of other files.
    CHECK(read(text, {"h100", "v100"}).all_reduce.size() == 1);

    CHECK(errors(text) == "t.csv: error: has rows of a100, v100; choose one, as in --only a100\n");
    CHECK(errors(text, {"a10"}) ==
          "t.csv: error: --only: unknown device 'a10'; did you mean 'a100'?\n");
    CHECK(errors(text, {"mi300x"}) ==
          "t.csv: error: --only: unknown device 'mi300x'; known: a100, v100\n");
}

TEST_CASE("What all_reduce_perf prints is read, run after run, between other lines") {
    const KernelTable table = read(
        "srun: job 17 queued\n" + nccl_head(8) +
        "node1:123:456 [0] NCCL INFO Channel 00/24 :    0   1   2   3   4   5   6   7\n"
        "           0             0     float     sum      -1     5.00    0.00    0.00      0     "
        "4.90    0.00    0.00      0\n"
        "     8388608       2097152     float     sum      -1    91.10   92.08  161.14      0    "
        "94.94   88.36  154.63      0\n"
        "    16777216       4194304     float     sum      -1    1.2e2  139.81  244.67      0    "
        "94.94   88.36  154.63      0\n"
        "# Out of bounds values : 0 OK\n"
        "# Avg bus bandwidth    : 202.9\n" +
        nccl_head(2) +
        "     8388608       2097152     float     sum      -1    86.90   96.53   96.53      0    "
        "94.94   88.36   88.36      0\n");
    REQUIRE(table.all_reduce.size() == 3);
    CHECK(table.all_reduce[0].ranks == 8);
    CHECK(table.all_reduce[0].bytes.value == 8'388'608);
    CHECK(table.all_reduce[0].time_s == doctest::Approx(91.1e-6));
    CHECK(table.all_reduce[1].time_s == doctest::Approx(120e-6));
    CHECK(table.all_reduce[2].ranks == 2);
    CHECK(table.point_to_point.empty());
}

TEST_CASE("What sendrecv_perf prints is told by its bandwidth, its columns or its name") {
    const std::string row =
        "  8388608  2097152  float  sum  -1  91.10  92.08  92.08  0  94.94  88.36  88.36  N/A\n";
    CHECK(read(nccl_head(8) + row).point_to_point.size() == 1);
    CHECK(read(nccl_head(2) + row).point_to_point.size() == 1);
    const std::string same =
        "  8388608  2097152  float  sum  -1  91.10  92.08  92.08  0  94.94  88.36  88.36  0\n";
    CHECK(read(nccl_head(2) + same).all_reduce.size() == 1);
    const KernelTable named =
        read("# Collective test starting: sendrecv_perf\n" + nccl_head(2) + same);
    REQUIRE(named.point_to_point.size() == 1);
    CHECK(named.point_to_point[0].bytes.value == 8'388'608);
    CHECK(named.point_to_point[0].time_s == doctest::Approx(91.1e-6));

    // nccl-tests 2.0 to 2.9: no group, no redop, no root.
    const KernelTable old = read(
        "# nThread 1 nGpus 2 minBytes 37748736 maxBytes 37748736 step: 1048576(bytes)\n"
        "#   Rank  0 Pid   5897 on         x0 device  0 [0x05] NVIDIA GeForce GTX 1080\n"
        "#   Rank  1 Pid   5897 on         x0 device  1 [0x06] NVIDIA GeForce GTX 1080\n"
        "#       size         count      type     time   algbw   busbw  error     time   algbw   "
        "busbw  error\n"
        "    37748736      37748736     uint8   6485.7    5.82    5.82  0e+00   6496.1    5.81    "
        "5.81  0e+00\n");
    CHECK(old.point_to_point.size() == 1);
}

TEST_CASE("A table that is none, or has nothing in it, is refused") {
    CHECK(errors("") == "t.csv: error: empty; a table of kernels begins with a header\n");
    CHECK(errors(" \n\n") == "t.csv: error: empty; a table of kernels begins with a header\n");
    CHECK(errors("model: gpt3\nbatch: 3\n") ==
          "t.csv: error: no table of kernels; a header names columns, as in "
          "kernel,m,n,k,batch,bytes,ranks,time_us\n");
    CHECK(errors("name,value\na,3\n") ==
          "t.csv:1:1: error: no table of kernels; a header names columns, as in "
          "kernel,m,n,k,batch,bytes,ranks,time_us\n"
          "    name,value\n"
          "    ^\n");
    CHECK(errors(header) == "t.csv: error: no rows of kernels below the header\n");
    CHECK(errors(nccl_head(2)) == "t.csv: error: no rows of kernels below the header\n");
    CHECK(errors(std::string(70'000, 'x')) ==
          "t.csv:1:1: error: a line of more than 65536 bytes; is this a table?\n"
          "    " +
              std::string(92, 'x') + "...\n    ^\n");
    CHECK(errors(std::string("kernel,bytes,time_us\nmemory,\0\x01,3\n", 33)) ==
          "t.csv:2:8: error: '?"
          "?' is not a number; 'bytes' is one, as in 128\n"
          "    memory,??,3\n"
          "           ^\n");
    const auto message = [](const std::string& file) {
        const auto table = read_kernel_table(file, {});
        return table ? "" : to_text(table.error());
    };
    const Folder folder;
    CHECK(message(folder.file("no.csv")) ==
          folder.file("no.csv") + ": error: no such file; check its name and folder\n");
    CHECK(message(folder.file("")) ==
          folder.file("") + ": error: a directory; name a file in it\n");
}

TEST_CASE("A wrong header is told column by column") {
    CHECK(errors("kernel,bytes,time_ms,bytes,rank\nmemory,1,1,1,2\n") ==
          "t.csv:1:14: error: unknown column 'time_ms'; did you mean 'time_us'?\n"
          "    kernel,bytes,time_ms,bytes,rank\n"
          "                 ^\n"
          "t.csv:1:22: error: a second column 'bytes'; remove one of them\n"
          "    kernel,bytes,time_ms,bytes,rank\n"
          "                         ^\n"
          "t.csv:1:28: error: unknown column 'rank'; did you mean 'ranks'?\n"
          "    kernel,bytes,time_ms,bytes,rank\n"
          "                               ^\n");
    CHECK(errors("kernel,bytes\nmemory,1\n") ==
          "t.csv:1:1: error: missing column 'time_us'; the columns are kernel, time_us, m, n, k, "
          "batch, layout, bytes, ranks, device\n"
          "    kernel,bytes\n"
          "    ^\n");
    CHECK(errors("m,n,k,time_us\n1,1,1,1\n") ==
          "t.csv:1:1: error: missing column 'kernel'; the columns are kernel, time_us, m, n, k, "
          "batch, layout, bytes, ranks, device\n"
          "    m,n,k,time_us\n"
          "    ^\n");
    CHECK(errors("device,gpus,time_us\na,2,3\n") ==
          "t.csv:1:1: error: missing column 'bytes'; the columns are device, gpus, bytes, time_us\n"
          "    device,gpus,time_us\n"
          "    ^\n");
    CHECK(errors("kernel,m,n,time_us\ngemm,1,1,1\n") ==
          "t.csv:2:1: error: this row needs a column 'k'; add it to the header\n"
          "    gemm,1,1,1\n"
          "    ^\n");
}

TEST_CASE("All that is wrong in rows is told at once, each with its place") {
    CHECK(errors(header + "gemm,4096,12x,,0,,,nan\n"
                          "gem,1,1,1,1,,,1\n"
                          "memory,,,,,1.5,,0\n"
                          "all_reduce,,,,,64,1,-3\n"
                          "all_reduce,,,,,64,2000000,inf\n"
                          "memory,,,,,1e16,,1e12\n"
                          "memory,,,,,64\n"
                          "memory,,,,,64,,1,2\n"
                          "point_to_point,,,,,64") ==
          "t.csv:2:11: error: '12x' is not a number; 'n' is one, as in 128\n"
          "    gemm,4096,12x,,0,,,nan\n"
          "              ^\n"
          "t.csv:2:15: error: 'k' is empty; this row needs it\n"
          "    gemm,4096,12x,,0,,,nan\n"
          "                  ^\n"
          "t.csv:2:16: error: 'batch' is 0; it must be a whole number from 1 to 1e+15\n"
          "    gemm,4096,12x,,0,,,nan\n"
          "                   ^\n"
          "t.csv:2:20: error: 'nan' is not a number; 'time_us' is one, as in 128\n"
          "    gemm,4096,12x,,0,,,nan\n"
          "                       ^\n"
          "t.csv:3:1: error: unknown kernel 'gem'; did you mean 'gemm'?\n"
          "    gem,1,1,1,1,,,1\n"
          "    ^\n"
          "t.csv:4:12: error: 'bytes' is 1.5; it must be a whole number from 1 to 1e+15\n"
          "    memory,,,,,1.5,,0\n"
          "               ^\n"
          "t.csv:4:17: error: 'time_us' is 0; a measured time is above 0 and at most a day, in "
          "microseconds\n"
          "    memory,,,,,1.5,,0\n"
          "                    ^\n"
          "t.csv:5:19: error: 'ranks' is 1; it must be a whole number from 2 to 1e+15\n"
          "    all_reduce,,,,,64,1,-3\n"
          "                      ^\n"
          "t.csv:5:21: error: 'time_us' is -3; a measured time is above 0 and at most a day, "
          "in microseconds\n"
          "    all_reduce,,,,,64,1,-3\n"
          "                        ^\n"
          "t.csv:6:19: error: 'ranks' is 2000000; no more than 1048576 ranks\n"
          "    all_reduce,,,,,64,2000000,inf\n"
          "                      ^\n"
          "t.csv:6:27: error: 'inf' is not a number; 'time_us' is one, as in 128\n"
          "    all_reduce,,,,,64,2000000,inf\n"
          "                              ^\n"
          "t.csv:7:12: error: 'bytes' is 1e16; it must be a whole number from 1 to 1e+15\n"
          "    memory,,,,,1e16,,1e12\n"
          "               ^\n"
          "t.csv:7:18: error: 'time_us' is 1e12; a measured time is above 0 and at most a day, "
          "in microseconds\n"
          "    memory,,,,,1e16,,1e12\n"
          "                     ^\n"
          "t.csv:8:12: error: 6 of 8 columns; fill in the line, or remove it\n"
          "    memory,,,,,64\n"
          "               ^\n"
          "t.csv:9:18: error: 9 columns, but the header has 8; remove what is too much\n"
          "    memory,,,,,64,,1,2\n"
          "                     ^\n"
          "t.csv:10:20: error: 6 of 8 columns; the file ends in the middle of this line\n"
          "    point_to_point,,,,,64\n"
          "                       ^\n");
}

TEST_CASE("Beyond fifty errors the rest is counted") {
    std::string text = header;
    for (int i = 0; i < 60; ++i) text += "memory,,,,,1,,x\n";
    const std::string all = errors(text);
    CHECK(all.find("t.csv:51:15: error: 'x' is not a number") != std::string::npos);
    CHECK(all.find("t.csv:52:15") == std::string::npos);
    CHECK(all.starts_with("t.csv: error: 10 more errors; correct these first\n"));
}

TEST_CASE("A wrong row of SimuMax's table is told in its words") {
    CHECK(errors("system,op,peak_tflops,shape,efficiency\n"
                 "a100,matmul,0,b=1 m=4096 n=2 k=1.5,1.2\n"
                 "a100,matmul,312,m=4096 n=2,0.5\n") ==
          "t.csv:2:13: error: 'peak_tflops' is 0; it must be from 0.001 to 1e+06\n"
          "    a100,matmul,0,b=1 m=4096 n=2 k=1.5,1.2\n"
          "                ^\n"
          "t.csv:2:32: error: 'k' is 1.5; it must be a whole number from 1 to 1e+15\n"
          "    a100,matmul,0,b=1 m=4096 n=2 k=1.5,1.2\n"
          "                                   ^\n"
          "t.csv:2:36: error: 'efficiency' is 1.2; it must be from 1e-06 to 1\n"
          "    a100,matmul,0,b=1 m=4096 n=2 k=1.5,1.2\n"
          "                                       ^\n"
          "t.csv:3:17: error: no 'b=' in this shape; write for example 'b=1 m=4096 k=5120 n=1536'\n"
          "    a100,matmul,312,m=4096 n=2,0.5\n"
          "                    ^\n"
          "t.csv:3:17: error: no 'k=' in this shape; write for example 'b=1 m=4096 k=5120 n=1536'\n"
          "    a100,matmul,312,m=4096 n=2,0.5\n"
          "                    ^\n");
}

TEST_CASE("Output of nccl-tests that cannot be used is told why") {
    const std::string row =
        "  8388608  2  float  sum  -1  91.10  92.08  161.14  0  94.94  88.36  "
        "154.63  0\n";
    CHECK(errors("# nThread 1 nGpus 8 minBytes 8\n" + row) ==
          "t.csv:2:3: error: no '# size count ... time' line before this row; copy the whole "
          "output\n"
          "    8388608  2  float  sum  -1  91.10  92.08  161.14  0  94.94  88.36  154.63  0\n"
          "    ^\n");
    CHECK(errors(nccl_head(0) + row) ==
          "t.csv:8:3: error: no '# Rank' line before this row; copy the whole output\n"
          "    8388608  2  float  sum  -1  91.10  92.08  161.14  0  94.94  88.36  154.63  0\n"
          "    ^\n");
    CHECK(errors(nccl_head(1) + row) ==
          "t.csv:9:3: error: the rows of one rank, which sends nothing; run it on two or more\n"
          "    8388608  2  float  sum  -1  91.10  92.08  161.14  0  94.94  88.36  154.63  0\n"
          "    ^\n");
    CHECK(errors(nccl_head(8, "node2") + row) ==
          "t.csv:16:3: error: the rows of 8 ranks on 2 hosts mix two kinds of links; run it on one "
          "host, or with one rank on each\n"
          "    8388608  2  float  sum  -1  91.10  92.08  161.14  0  94.94  88.36  154.63  0\n"
          "    ^\n");
    CHECK(errors(nccl_head(4) + row) ==
          "t.csv:12:3: error: on 4 ranks this is not the bus bandwidth of all_reduce_perf or "
          "sendrecv_perf; no other test is calibrated\n"
          "    8388608  2  float  sum  -1  91.10  92.08  161.14  0  94.94  88.36  154.63  0\n"
          "    ^\n");
    CHECK(errors("# Collective test starting: all_gather_perf\n" + nccl_head(8) + row) ==
          "t.csv:1:29: error: all_gather_perf is not calibrated; give the output of "
          "all_reduce_perf or sendrecv_perf\n"
          "    # Collective test starting: all_gather_perf\n"
          "                                ^\n");
    CHECK(errors(nccl_head(8) + row +
                 "  8388608  2  float  sum  -1  -4  92.08  161.14  0  1  1  "
                 "1  0\n  16777216  4194304  fl") ==
          "t.csv:17:31: error: 'time' is -4; a measured time is above 0 and at most a day, in "
          "microseconds\n"
          "    8388608  2  float  sum  -1  -4  92.08  161.14  0  1  1  1  0\n"
          "                                ^\n"
          "t.csv:18:22: error: 3 of 13 columns; the file ends in the middle of this line\n"
          "    16777216  4194304  fl\n"
          "                       ^\n");
}

}  // namespace fourfold
