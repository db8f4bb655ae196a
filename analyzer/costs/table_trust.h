// SPDX-License-Identifier: Apache-2.0
// Decides which tables of nccl-tests may count at all, before anything is read off them. What cannot be so is set aside
// by its name, not averaged away: a setting that such a table recommends would be forced on a job for nothing.
#pragma once

#include <vector>

#include "analyzer/costs/link_peaks.h"
#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/costs/table_evidence.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::costs {

struct TrustedTables {
    std::vector<NcclTestsTable> tables;
    std::vector<TableNote> setAside;
};

/// Sets tables aside, each with its file, lines and what speaks against it:
/// - impossible: a size that takes less than any link's latency, or a bandwidth beyond what the links of `peaks` carry,
///   or those of any machine. Peaks that were only reached are no limit;
/// - impossible, too: sizes that the job's own messages took much less time for, under the table's own setting, at most
///   of the sizes that both have: it is of another machine, or of a busy one;
/// - inconsistent: times that fall with the size, or two times of one size that are a kink apart;
/// - contradicted: tables of the same setting and group that are apart at most sizes: all of them, or, where most
///   agree, those that do not; of two those of another NCCL than the job's.
/// `facts` are those of the job, for its groups and its NCCL.
TrustedTables trustedTables(const std::vector<NcclTestsTable>& tables, const LinkPeaks& peaks = {},
                            const facts::TraceFacts& facts = {});

struct TableTrustThresholds {
    /// GB/s, one direction: a port of NVLink 6 (NVIDIA Rubin, 3.6 TB/s both ways), the fastest that is announced. Cards
    /// of a network are slower.
    static constexpr double kFastestPort = 1'800;
    /// Half of what NCCL takes a hop of LL over NVLink for (0.6 us, src/graph/tuning.cc); no collective has fewer hops
    /// than one.
    static constexpr double kShortestNs = 300;
    /// Of the pairs of sizes that are SizeCurve::kSmallestRange apart, this many may have the smaller one slower by
    /// more than SizeCurve::kWorldError: in 55 published tables at most 8 in 100 are slower by a twentieth, with kinks
    /// and all.
    static constexpr double kMostFalling = 1.0 / 3;
    /// A test's time holds launches, which a trace's does not: kernels of eight GPUs under one thread start in 40 us.
    static constexpr double kLaunchNs = 40'000;
    /// Of the sizes that two tables share this many may be a kink apart: published tables have up to one kink in eight.
    static constexpr double kMostApart = 1.0 / 3;
};

}  // namespace rankscope::costs
