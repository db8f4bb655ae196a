// SPDX-License-Identifier: Apache-2.0
// The file rankscope.toml.
#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/verbs/compare_config.h"
#include "tests/fuzz/fuzz_input.h"

using namespace rankscope;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    try {
        cli::readCompareConfig(fuzz::folder().write("rankscope.toml", fuzz::textOf(data, bytes)));
    } catch (const cli::VerbError&) {
    }
    return 0;
}
