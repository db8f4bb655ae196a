// SPDX-License-Identifier: Apache-2.0
// A dump of NCCL's example profiler plugin.
#include "collector/importers/import_error.h"
#include "collector/importers/readers.h"
#include "tests/fuzz/fuzz_input.h"

using namespace rankscope;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    const auto file = fuzz::folder().write("dump.json", fuzz::textOf(data, bytes));
    try {
        collector::kNcclProfilerReader.read(file, {}, [](const collector::FileRank&) {});
    } catch (const collector::ImportError&) {
    }
    return 0;
}
