// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/replayed_cost.h"

#include <algorithm>
#include <map>

#include "analyzer/diagnose/savings.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {

std::optional<std::vector<double>> replayedCosts(const job::Analysis& analysis, const job::Finding& finding) {
    const replay::ReplayModel& replay = analysis.replay;
    if (!replay.available() || replay.error() > SavingThresholds::kLargestError || replay.steps.empty())
        return std::nullopt;
    const std::vector<std::string> changes = changesFor(analysis, finding);
    if (changes.empty()) return std::nullopt;
    edits::ChangedJob job = edits::unchangedJob(analysis);
    const std::vector<double> before = job.stepsNs;
    try {
        for (const std::string& text : changes) edits::change(job, *edits::parseEdit(text), analysis);
    } catch (const edits::EditError&) {
        return std::nullopt;
    }
    std::map<int, double> saved;
    std::vector<double> all;
    for (size_t s = 0; s < std::min({replay.steps.size(), before.size(), job.stepsNs.size()}); ++s) {
        all.push_back(std::max(0.0, before[s] - job.stepsNs[s]));
        saved[replay.steps[s]] = all.back();
    }
    const double typical = facts::median(std::move(all));
    std::vector<double> costs;
    for (int step : analysis.steps) costs.push_back(saved.count(step) != 0 ? saved[step] : typical);
    return costs;
}

}  // namespace rankscope::diagnose
