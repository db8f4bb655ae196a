// SPDX-License-Identifier: Apache-2.0
// A scenario of the reference harness.
#include "reference/workloads/scenario.h"
#include "tests/fuzz/fuzz_input.h"

using namespace rankscope;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    try {
        reference::parseScenario(std::string(fuzz::textOf(data, bytes)), "input");
    } catch (const reference::ScenarioError&) {
    }
    return 0;
}
