// SPDX-License-Identifier: Apache-2.0
// Knows which algorithm and protocol NCCL has for which function and group (src/device/generate.py, src/graph/tuning.cc
// and docs/env.rst of NCCL 2.28).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::costs {

/// Holds the version of NCCL a job ran with, or the oldest it can have been.
struct NcclVersion {
    int major = 0;
    int minor = 0;
    int patch = 0;
    bool orNewer = false;  // only a lower bound is known

    bool atLeast(int wantedMajor, int wantedMinor) const {
        return major > wantedMajor || (major == wantedMajor && minor >= wantedMinor);
    }
    /// True when it reads "allreduce:ring;allgather:ring" in NCCL_ALGO and NCCL_PROTO: since 2.24 (parseList in
    /// src/graph/tuning.cc), an unknown word before.
    bool perFunctionSyntax() const { return atLeast(2, 24); }
    std::string text() const;  // "2.28.9", "2.26 or newer"
};

/// Reads "2.28.9", "2.28.9+cuda13.0", "[2, 21, 5]" and ncclGetVersion()'s 22809 (2804 before 2.9); nothing else.
std::optional<NcclVersion> parseNcclVersion(const std::string& text);

/// Reads the version that was recorded (meta nccl_version); else a profiler plugin that was called tells 2.26 or newer,
/// from where on this tool offers it. Nothing when neither tells.
std::optional<NcclVersion> ncclVersionOf(const facts::TraceFacts& facts);

/// Describes a kind of communicator: groups of one shape behave alike.
struct GroupShape {
    int nodes = 1;
    int ranks = 1;
    auto operator<=>(const GroupShape&) const = default;
};
inline GroupShape shapeOf(const facts::Communicator& communicator) {
    return {communicator.nodes, communicator.size};
}

/// Holds what the hardware was seen to do: NVLS, CollNet and LL128 depend on it, and a setting that asks for what is
/// not there fails the job or, with LL128, can corrupt data.
struct SeenChoices {
    std::set<store::Algorithm> algorithms;
    std::set<store::Protocol> protocols;
};

/// True when NCCL has the choice for a function over so many nodes, on whatever hardware and in whatever shape of the
/// group; a part that is unknown is left to NCCL. It has none for messages, all-to-all among them.
bool existsIn(store::Op op, int nodes, AlgorithmChoice choice);

/// Returns what existsIn() for a reader: "for all_gather NCCL has ring with LL, LL128 or Simple; nvls, pat with
/// Simple".
std::string existingText(store::Op op, int nodes);

/// True when this NCCL has the combination for the function and the shape of the group, and nothing has to be taken on
/// trust from the hardware.
bool isSupported(store::Op op, GroupShape shape, AlgorithmChoice choice, const std::optional<NcclVersion>& version,
                 const SeenChoices& seen);

/// Returns what NCCL may take by itself although nothing shows that the hardware has it: LL128, which NCCL enables on
/// GPUs of one kind under NVLink (tuning.cc). It is not to be forced.
std::vector<AlgorithmChoice> unseenChoices(store::Op op, GroupShape shape, const SeenChoices& seen);

/// Returns all that isSupported().
std::vector<AlgorithmChoice> supportedChoices(store::Op op, GroupShape shape, const std::optional<NcclVersion>& version,
                                              const SeenChoices& seen);

}  // namespace rankscope::costs
