// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyzer/timeline/trace_facts.h"

namespace rankscope::analyzer {

/// How a peak is known, the best way first.
enum class PeakKind : uint8_t {
    told,         // by the user: --links, RANKSCOPE_LINKS, a configuration file
    measured,     // an nccl-tests table or a sweep
    machine,      // NVML, InfiniBand and network interfaces of the hosts that ran the job
    deviceTable,  // a data sheet, found by the name of the device
    atLeast,      // the best that this job reached: a lower bound, and verdicts on it say 'at least'
};

struct LinkClass {
    double bytesPerNs = 0;  // = GB/s (1e9), one direction, per rank
    double alphaNs = 0;     // start-up per hop; 0 when not known
    PeakKind kind = PeakKind::told;
    std::string source = {};  // what told it, for a reader: "RANKSCOPE_LINKS", "NVML: 18 links of NVLink 4"
};

/// What the links can do. `intra` is a rank's port inside its node, `inter` its own NIC.
struct LinkPeaks {
    std::optional<LinkClass> intra;
    std::optional<LinkClass> inter;
    std::string source;  // empty: unknown

    /// Highest bus bandwidth a collective of this communicator can reach: inside a node intra; over nodes min(intra, k * inter), k = fewest members
    /// on a node, since NCCL's rings use every NIC.
    std::optional<double> busCeiling(const Communicator& communicator) const;
    /// True where that ceiling is a lower bound: the best that this job reached.
    bool atLeast(const Communicator& communicator) const;
    /// Slowest start-up per hop of the links it uses, 0 when unknown.
    double alphaPerHop(const Communicator& communicator) const;
};

/// From meta 'links' (RANKSCOPE_LINKS as given: "intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18").
LinkPeaks readLinkPeaks(const TraceFacts& facts);
LinkPeaks parseLinkPeaks(const std::string& text);

}  // namespace rankscope::analyzer
