// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/late_launch.h"

#include <algorithm>

#include "analyzer/facts/statistics.h"
#include "analyzer/facts/step_model.h"

namespace rankscope::diagnose {

LateLaunch lateLaunch(const CriticalStep& step, const std::set<int64_t>& repaired) {
    LateLaunch result;
    std::vector<facts::ModelTask> before = facts::modelTasks(step.tasks);
    std::vector<double> lateness;
    double readyNs = 0, readyAt = 0;  // in the order of the network: nothing overtakes what it stands behind
    for (size_t i = 0; i < step.tasks.size(); ++i) {
        const facts::CommTask& task = step.tasks[i];
        const bool known = task.readyNs >= 0;
        readyNs = std::max(readyNs, static_cast<double>(known ? task.readyNs : task.startNs));
        readyAt = std::max(readyAt, static_cast<double>(known ? task.computeAtReadyNs : task.computeBeforeNs));
        before[i].readyAt = readyAt;
        before[i].neededAt = std::max(before[i].neededAt, readyAt);
        if (known && repaired.count(task.communicatorId) == 0)
            before[i].lagNs = std::max(0.0, static_cast<double>(task.launchNs) - readyNs);
    }
    std::vector<facts::ModelTask> after = before;
    int64_t streamFreeNs = 0;
    for (size_t i : step.own) {
        const facts::CommTask& task = step.tasks[i];
        after[i].lagNs = 0;
        if (task.readyNs < 0) continue;
        ++result.calls;
        const double late = static_cast<double>(task.launchNs - std::max(task.readyNs, streamFreeNs));
        streamFreeNs = task.endNs;
        if (late <= LateLaunch::kSlackNs || static_cast<double>(task.startNs - task.launchNs) > LateLaunch::kSlackNs)
            continue;
        ++result.late;
        lateness.push_back(late);
    }
    if (result.late == 0) return result;
    result.latenessNs = facts::median(lateness);
    const auto computeNs = static_cast<double>(step.attribution->computeNs);
    result.savedNs = std::max(0.0, facts::modelStepNs(before, computeNs) - facts::modelStepNs(after, computeNs));
    return result;
}

}  // namespace rankscope::diagnose
