// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collector/store/reader.h"
#include "gui/session/event_details.h"
#include "gui/session/run_info.h"

namespace rankscope::gui {

/// Where a rank's step goes. They add up to the step.
enum class StepPart : uint8_t { compute, waiting, transfer, memory, idle };
inline constexpr size_t kStepParts = 5;
const char* nameOf(StepPart part) noexcept;

/// Means over steps and ranks, in nanoseconds a step.
struct StepBreakdown {
    int64_t stepNs = 0;
    std::array<int64_t, kStepParts> parts{};
    int64_t overlappedNs = 0;                   ///< communication behind compute; part of compute
    std::map<std::string, int64_t> idleCauses;  ///< of the idle part, by cause of trace.db
    std::vector<int32_t> ranks;                 ///< over which the means are
};

/// Kernels of one name in the analysed steps.
struct KernelSummary {
    std::string name;  ///< safe to show
    bool communication = false;
    int64_t nsPerStep = 0;    ///< of one rank, on average
    double countPerStep = 0;  ///< likewise
    EventLink longest;
};

/// What two runs are compared by.
struct RunSummary {
    std::string name;          ///< safe to show
    size_t steps = 0;          ///< analysed ones: warm-up left out
    int64_t medianStepNs = 0;  ///< of the slowest rank of each step
    StepBreakdown all;
    std::map<std::string, StepBreakdown>
        roles;  ///< "stage 1 of 4"; empty where the ranks have no roles that trace.db shows
    std::map<int32_t, StepBreakdown> ranks;
    std::vector<KernelSummary> kernels;  ///< by time, the most first
};

/// Throws store::Error where the file is damaged.
RunSummary readRunSummary(store::TraceReader& reader, const RunInfo& run);

}  // namespace rankscope::gui
