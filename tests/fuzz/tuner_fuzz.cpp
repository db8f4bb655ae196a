// SPDX-License-Identifier: Apache-2.0
// A tuner file.
#include "analyzer/recommend/tuner_csv.h"
#include "tests/fuzz/fuzz_input.h"

using namespace rankscope;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    const auto file = recommend::parseTunerCsv(fuzz::textOf(data, bytes));
    // What was read without a complaint is written, and read again, as the same.
    if (!file.problems.empty()) return 0;
    const auto again = recommend::parseTunerCsv(recommend::formatTunerCsv(file.rows));
    if (!again.problems.empty() || again.rows.size() != file.rows.size()) __builtin_trap();
    return 0;
}
