// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/exposed_rows.h"

#include <algorithm>

#include "analyzer/text/units.h"

namespace rankscope::diagnose {

const CriticalStep& shownStep(const job::Analysis& analysis, const std::vector<CriticalStep>& steps,
                              const job::Finding& finding) {
    const CriticalStep* shown = &steps.front();
    int64_t longest = 0;
    for (const CriticalStep& step : steps) {
        const facts::StepWindow* window = analysis.window(step.rank->rank, step.tasks[step.own.front()].step);
        if (window == nullptr) continue;
        const int64_t both = std::min(window->startNs + window->durNs, finding.windowEndNs) -
                             std::max(window->startNs, finding.windowStartNs);
        if (both <= longest) continue;
        longest = both;
        shown = &step;
    }
    return *shown;
}

void addExposedRows(const CriticalStep& step, std::vector<size_t> candidates, size_t most, const std::string& what,
                    job::Finding& finding) {
    std::erase_if(candidates,
                  [&](size_t i) { return step.tasks[i].collectiveId == 0 || step.tasks[i].exposedTransferNs <= 0; });
    std::stable_sort(candidates.begin(), candidates.end(), [&](size_t a, size_t b) {
        return step.tasks[a].exposedTransferNs > step.tasks[b].exposedTransferNs;
    });
    candidates.resize(std::min(most, candidates.size()));
    std::sort(candidates.begin(), candidates.end());
    for (size_t i : candidates) {
        const facts::CommTask& task = step.tasks[i];
        finding.evidence.rows.push_back(
            {"collective", task.collectiveId, step.rank->rank,
             what + ", exposed for " + text::durationText(static_cast<double>(task.exposedTransferNs))});
    }
}

}  // namespace rankscope::diagnose
