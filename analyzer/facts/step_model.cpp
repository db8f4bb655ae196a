// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/step_model.h"

#include <algorithm>
#include <numeric>

namespace rankscope::facts {

double modelStepNs(const std::vector<ModelTask>& tasks, double computeNs) {
    std::vector<size_t> byNeed(tasks.size());
    std::iota(byNeed.begin(), byNeed.end(), size_t{0});
    std::ranges::stable_sort(byNeed, [&](size_t a, size_t b) { return tasks[a].neededAt < tasks[b].neededAt; });

    std::vector<double> ends(tasks.size(), 0);
    double progress = 0;
    double now = 0;
    size_t issued = 0;
    size_t need = 0;
    double networkFree = 0;
    // Compute runs on to the next point at which something becomes ready or is needed.
    while (issued < tasks.size() || need < byNeed.size()) {
        const bool issueNext =
            issued < tasks.size() && (need == byNeed.size() || tasks[issued].readyAt <= tasks[byNeed[need]].neededAt);
        const double point = std::min(issueNext ? tasks[issued].readyAt : tasks[byNeed[need]].neededAt, computeNs);
        if (point > progress) {
            now += point - progress;
            progress = point;
        }
        if (issueNext) {
            networkFree = std::max(networkFree, now + tasks[issued].lagNs) + tasks[issued].durationNs;
            ends[issued++] = networkFree;
        } else {
            // A task that is needed before it is issued would be a cycle: what was not issued yet holds nobody up.
            if (byNeed[need] < issued) now = std::max(now, ends[byNeed[need]]);
            ++need;
        }
    }
    return std::max(now + computeNs - progress, networkFree);
}

std::vector<ModelTask> modelTasks(const std::vector<CommTask>& tasks) {
    std::vector<ModelTask> model;
    double lastEnd = 0, lastGather = 0;
    for (const CommTask& task : tasks) {
        double& last = task.op == store::Op::allGather ? lastGather : lastEnd;
        last = std::max(last, static_cast<double>(task.computeAtEndNs));
    }
    if (lastEnd == 0) lastEnd = lastGather;
    for (size_t i = 0; i < tasks.size(); ++i) {
        const CommTask& task = tasks[i];
        double neededAt = lastEnd;
        if (task.op == store::Op::allGather) {
            const auto next = std::find_if(
                tasks.begin() + static_cast<std::ptrdiff_t>(i) + 1, tasks.end(), [&](const CommTask& other) {
                    return other.op == task.op && other.communicatorId == task.communicatorId &&
                           other.computeBeforeNs > task.computeBeforeNs;
                });
            neededAt = static_cast<double>(next == tasks.end() ? task.computeAtEndNs : next->computeBeforeNs);
            if (task.exposedTransferNs > 0) neededAt = std::min(neededAt, static_cast<double>(task.computeAtEndNs));
        }
        const double ready = static_cast<double>(task.computeBeforeNs);
        model.push_back({ready, static_cast<double>(task.transferNs()), std::max(ready, neededAt)});
    }
    return model;
}

}  // namespace rankscope::facts
