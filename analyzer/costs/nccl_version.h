// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "analyzer/facts/trace_facts.h"

namespace rankscope::costs {

/// The NCCL a job ran with, or the oldest it can have been.
struct NcclVersion {
    int major = 0;
    int minor = 0;
    int patch = 0;
    bool orNewer = false;  // only a lower bound is known

    bool atLeast(int wantedMajor, int wantedMinor) const {
        return major > wantedMajor || (major == wantedMajor && minor >= wantedMinor);
    }
    /// "allreduce:ring;allgather:ring" in NCCL_ALGO and NCCL_PROTO: read since 2.24 (parseList in src/graph/tuning.cc),
    /// an unknown word before.
    bool perFunctionSyntax() const { return atLeast(2, 24); }
    std::string text() const;  // "2.28.9", "2.26 or newer"
};

/// From what was recorded (meta nccl_version); else from the profiler plugin having been called, which this tool offers
/// from NCCL 2.26 on. Nothing when neither tells.
std::optional<NcclVersion> ncclVersionOf(const facts::TraceFacts& facts);

}  // namespace rankscope::costs
