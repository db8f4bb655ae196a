// SPDX-License-Identifier: Apache-2.0
// What `rankscope tune --candidates` is given.
#include "analyzer/recommend/tune.h"
#include "collector/store/error.h"
#include "tests/fuzz/fuzz_input.h"

using namespace rankscope;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    try {
        std::vector<std::string> leftOut;
        recommend::parseCandidates("input", std::string(fuzz::textOf(data, bytes)), leftOut);
    } catch (const store::Error&) {
    }
    return 0;
}
