// SPDX-License-Identifier: Apache-2.0
// A mapping file and, behind a zero, the trace that it tells how to read.
#include <algorithm>

#include "collector/importers/import_error.h"
#include "collector/importers/reader_mapped.h"
#include "tests/fuzz/fuzz_input.h"

using namespace rankscope;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    const std::string_view text = fuzz::textOf(data, bytes);
    const size_t zero = std::min(text.find('\0'), text.size());
    const auto mapping = fuzz::folder().write("mapping.json", text.substr(0, zero));
    const auto file = fuzz::folder().write("events.json", text.substr(std::min(zero + 1, text.size())));
    try {
        collector::mappedReader(mapping, {file}).read(file, {}, [](const collector::FileRank&) {});
    } catch (const collector::ImportError&) {
    }
    return 0;
}
