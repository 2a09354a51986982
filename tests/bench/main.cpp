#include <benchmark/benchmark.h>

#include "topology/memory.hpp"

int main(int argc, char** argv) {
    fourfold::keep_freed_memory();  // as the program does
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
}
