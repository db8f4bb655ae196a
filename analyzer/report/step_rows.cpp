// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/step_rows.h"

#include <algorithm>
#include <map>

namespace rankscope::report {

std::vector<StepRow> stepRows(const facts::TraceFacts& facts) {
    if (facts.wholeRunIsOneStep) return {};
    std::map<int, StepRow> byIndex;
    for (const facts::RankFacts& rank : facts.ranks) {
        for (const facts::StepWindow& step : rank.steps) {
            const int64_t endNs = step.startNs + step.durNs;
            StepRow& row =
                byIndex.try_emplace(step.step, StepRow{step.step, step.startNs, endNs, 0, false}).first->second;
            row.startNs = std::min(row.startNs, step.startNs);
            row.endNs = std::max(row.endNs, endNs);
            row.durNs = std::max(row.durNs, step.durNs);
            row.warmUp = row.warmUp || step.warmUp;
        }
    }
    std::vector<StepRow> rows;
    for (const auto& [index, row] : byIndex) rows.push_back(row);
    return rows;
}

}  // namespace rankscope::report
