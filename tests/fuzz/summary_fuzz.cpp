// SPDX-License-Identifier: Apache-2.0
// A summary of a run, as a baseline keeps it.
#include "analyzer/compare/run_summary.h"
#include "analyzer/compare/summary_file.h"
#include "tests/fuzz/fuzz_input.h"

using namespace rankscope;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    try {
        const auto summary = compare::parseSummary(std::string(fuzz::textOf(data, bytes)), "input");
        // What was read is written, and read again, as the same.
        const std::string written = compare::renderSummary(summary);
        if (compare::renderSummary(compare::parseSummary(written, "written")) != written) __builtin_trap();
    } catch (const compare::SummaryError&) {
    }
    return 0;
}
