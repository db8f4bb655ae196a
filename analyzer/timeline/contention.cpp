// SPDX-License-Identifier: Apache-2.0
#include "analyzer/timeline/contention.h"

#include <algorithm>
#include <map>

#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {
namespace {

struct Sample {
    double durNs = 0;
    double besideNs = 0;
    int step = 0;
};

std::map<KernelKey, std::vector<Sample>> samplesOf(const std::vector<ComputeTask>& compute, const CoveredLength& communication,
                                                   const std::vector<StepWindow>& steps) {
    std::map<KernelKey, std::vector<Sample>> samples;
    size_t at = 0;
    for (const ComputeTask& task : compute) {
        while (at < steps.size() && steps[at].startNs + steps[at].durNs <= task.startNs) ++at;
        if (at == steps.size()) break;
        if (steps[at].warmUp || task.startNs < steps[at].startNs || task.endNs <= task.startNs) continue;
        samples[task.key].push_back({static_cast<double>(task.endNs - task.startNs), static_cast<double>(communication.within(task.startNs, task.endNs)), steps[at].step});
    }
    return samples;
}

}  // namespace

Contention measureContention(const std::vector<ComputeTask>& compute, const CoveredLength& communication, const std::vector<StepWindow>& steps) {
    Contention result;
    std::vector<double> shares;
    std::map<int, double> lost;
    std::map<int, double> besideOnly;  // time beside communication of kernels that never ran alone, by step
    double most = 0;
    for (const auto& [key, samples] : samplesOf(compute, communication, steps)) {
        std::vector<double> alone, beside;
        for (const Sample& s : samples) {
            if (s.besideNs == 0) alone.push_back(s.durNs);
            if (s.besideNs >= Contention::kBesideShare * s.durNs) beside.push_back(s.durNs);
        }
        if (static_cast<int>(alone.size()) < Contention::kFewest || static_cast<int>(beside.size()) < Contention::kFewest) {
            for (const Sample& s : samples) besideOnly[s.step] += s.besideNs;
            continue;
        }
        const double base = median(alone);
        double total = 0;
        for (const Sample& s : samples) {
            if (s.besideNs <= 0) continue;
            total += s.durNs - base;
            lost[s.step] += s.durNs - base;
            if (s.besideNs >= Contention::kBesideShare * s.durNs) shares.push_back((s.durNs - base) / s.besideNs);
        }
        if (total <= most) continue;
        most = total;
        result.key = key;
        result.keyAloneNs = base;
        result.keyBesideNs = median(beside);
    }
    result.samples = static_cast<int>(shares.size());
    result.lostShare = std::min(median(shares), 0.95);
    result.lostShareError = medianError(shares);
    // They are taken to lose the share that the others were seen to lose.
    if (!shares.empty())
        for (const auto& [step, ns] : besideOnly) lost[step] += ns * result.lostShare;
    result.lostNs.assign(lost.begin(), lost.end());
    return result;
}

}  // namespace rankscope::analyzer
