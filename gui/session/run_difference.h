// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/session/run_summary.h"

namespace rankscope::gui {

/// A time of both runs, per step.
struct TimeChange {
    std::string what;
    int64_t aNs = 0, bNs = 0;

    int64_t changeNs() const noexcept { return bNs - aNs; }
};

/// Of the ranks that play one part in the job: parts of their step, which add up to its change, and the causes of the
/// idle part.
struct RoleChange {
    std::string role;  ///< "all ranks", "stage 1 of 4", "rank 3"
    TimeChange step;
    std::vector<TimeChange> parts;
    std::vector<TimeChange> idleCauses;
};

enum class FindingState : uint8_t { appeared, gone, worse, better, same };
const char* nameOf(FindingState state) noexcept;

/// A finding of one run or both. Matched by diagnosis, then by the ranks where the fix goes.
struct FindingChange {
    FindingState state = FindingState::same;
    std::string diagnosis, title;          ///< safe to show
    std::optional<double> aShare, bShare;  ///< of the step, 0..1
    std::optional<size_t> inA, inB;        ///< index in RunInfo::findings
};

struct KernelChange {
    TimeChange time;  ///< of a rank's step, on average
    bool communication = false;
    double aCount = 0, bCount = 0;  ///< per step and rank
    EventLink aLongest, bLongest;   ///< table none where that run has no such kernel
};

struct RunDifference {
    std::string aName, bName;
    size_t aSteps = 0, bSteps = 0;
    TimeChange step;                      ///< medians
    std::vector<RoleChange> roles;        ///< all ranks first, then roles, then ranks where both runs have the same
    std::vector<FindingChange> findings;  ///< new, gone, worse, better, same
    std::vector<KernelChange> kernels;    ///< by size of the change; at most kMaxKernelChanges
    size_t kernelNames = 0;               ///< of which `kernels` shows the first
    std::vector<std::string> remarks;     ///< why they may not be comparable
};

inline constexpr size_t kMaxKernelChanges = 200;
/// A finding whose share of the step moved by less is the same.
inline constexpr double kSameShare = 0.005;

RunDifference compareRuns(const RunSummary& a, const RunInfo& aRun, const RunSummary& b, const RunInfo& bRun);

/// As plain text, for the clipboard.
std::string differenceText(const RunDifference& difference);

}  // namespace rankscope::gui
