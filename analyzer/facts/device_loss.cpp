// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/device_loss.h"

#include <algorithm>
#include <unordered_set>

namespace rankscope::facts {
namespace {

constexpr double kLostShare = 0.02;  // of a step's launches: one that failed leaves no record either
constexpr int kFewestLost = 3;

struct Count {
    int submitted = 0, lost = 0;
    bool lossy() const { return lost >= kFewestLost && lost > kLostShare * submitted; }
};

}  // namespace

std::vector<int> stepsWithLostRecords(const RankEvents& events, const RankFacts& facts) {
    std::unordered_set<int64_t> recorded;
    for (const ComputeTask& task : events.compute) recorded.insert(task.correlation);
    for (const CommTask& task : events.communication) recorded.insert(task.correlation);
    for (const MemoryTask& task : events.memory) recorded.insert(task.correlation);
    std::vector<Count> counts(facts.steps.size());
    Count all;
    for (const HostCall& call : events.hostCalls) {
        // Copies and sets of nothing leave no record although nothing is lost. A buffer that is, takes kernels with it.
        if (call.kind != store::ApiKind::launch && call.kind != store::ApiKind::graphLaunch) continue;
        const bool lost = call.correlation < 0 || recorded.count(call.correlation) == 0;
        ++all.submitted;
        all.lost += lost;
        const auto step = std::find_if(facts.steps.begin(), facts.steps.end(), [&](const StepWindow& s) {
            return s.startNs <= call.startNs && call.startNs < s.startNs + s.durNs;
        });
        if (step == facts.steps.end()) continue;
        Count& count = counts[static_cast<size_t>(step - facts.steps.begin())];
        ++count.submitted;
        count.lost += lost;
    }
    std::vector<int> steps;
    if (all.lost * 2 > all.submitted) return steps;
    for (size_t i = 0; i < counts.size(); ++i)
        if (counts[i].lossy() && !facts.steps[i].warmUp) steps.push_back(facts.steps[i].step);
    return steps;
}

}  // namespace rankscope::facts
