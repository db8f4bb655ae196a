// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace rankscope::cli {

// A copy of what the ring of light mode holds of each rank, and of what is known of the time before, made while the job
// goes on: NAME/dumps/<number>-<reason>, a run of its own that every verb takes.
struct RingDump {
    std::filesystem::path run;
    int ranks = 0;  // whose files were copied
};

// Whether the run is recorded with a ring: only such runs have something that would be lost.
bool hasRing(const std::filesystem::path& run);

// `reason`: letters, digits and underscores. Throws VerbError (exit code 3) where there is nothing to be copied, or
// no place for it; then no dump is left.
RingDump dumpRing(const std::filesystem::path& run, const std::string& reason);

}  // namespace rankscope::cli
