// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/contention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "analyzer/facts/statistics.h"

namespace rankscope::facts {
namespace {

struct Sample {
    double durNs = 0;
    double besideNs = 0;
    int step = 0;
};

/// A kernel and the one behind it on its stream. Matrices of one shape of output share name and grid whatever they are
/// summed over, in forward and in backward: what follows them tells the places of the program apart.
using Place = std::pair<KernelKey, KernelKey>;

/// By task, the key of the next one on its stream; none for the last.
std::vector<KernelKey> followers(const std::vector<ComputeTask>& compute) {
    std::vector<KernelKey> keys(compute.size());
    std::map<int32_t, KernelKey> nextOnStream;
    for (size_t i = compute.size(); i-- > 0;) {
        KernelKey& next = nextOnStream[compute[i].streamId];
        keys[i] = next;
        next = compute[i].key;
    }
    return keys;
}

std::map<Place, std::vector<Sample>> samplesOf(const std::vector<ComputeTask>& compute,
                                               const CoveredLength& communication,
                                               const std::vector<StepWindow>& steps) {
    std::map<Place, std::vector<Sample>> samples;
    const std::vector<KernelKey> behind = followers(compute);
    for (size_t i = 0; i < compute.size(); ++i) {
        const ComputeTask& task = compute[i];
        const StepWindow* step = stepAt(steps, task.startNs);
        if (step == nullptr || step->warmUp || task.endNs <= task.startNs) continue;
        samples[{task.key, behind[i]}].push_back({static_cast<double>(task.endNs - task.startNs),
                                                  static_cast<double>(communication.within(task.startNs, task.endNs)),
                                                  step->step});
    }
    return samples;
}

/// Holds what one kernel loses: its time over that alone, per time beside communication.
struct KeyLoss {
    double baseNs = 0;    // median alone
    double besideNs = 0;  // median duration of those beside communication
    double share = 0;     // of the time beside communication, lost
    double error = 0;     // standard error of the share
    double totalBesideNs = 0;
    int samples = 0;
};

bool equalWork(const std::vector<double>& alone) {
    return quartileHalfWidth(alone) <= Contention::kAloneSpread * median(alone) &&
           quantile(alone, 0.9) <= Contention::kAloneRange * quantile(alone, 0.1);
}

/// Returns nothing where equals alone are too few, or so unlike each other that they cannot be the same work.
std::optional<KeyLoss> lossOf(const std::vector<Sample>& samples) {
    std::vector<double> alone;
    for (const Sample& s : samples)
        if (s.besideNs == 0) alone.push_back(s.durNs);
    KeyLoss loss;
    loss.baseNs = median(alone);
    if (static_cast<int>(alone.size()) < Contention::kFewestAlone || loss.baseNs < Contention::kShortestNs ||
        !equalWork(alone))
        return std::nullopt;
    std::vector<double> durations, covered, shares;
    for (const Sample& s : samples) {
        loss.totalBesideNs += s.besideNs;
        if (s.besideNs < Contention::kBesideShare * s.durNs) continue;
        durations.push_back(s.durNs);
        covered.push_back(s.besideNs);
        shares.push_back((s.durNs - loss.baseNs) / s.besideNs);
    }
    loss.samples = static_cast<int>(shares.size());
    if (loss.samples < Contention::kFewest) return std::nullopt;
    loss.besideNs = median(durations);
    loss.share = median(shares);
    // All samples share the error of the time alone, and the shorter the time beside communication the more it matters.
    loss.error = std::hypot(medianError(shares), medianError(alone) / median(covered));
    return loss;
}

}  // namespace

Contention measureContention(const std::vector<ComputeTask>& compute, const CoveredLength& communication,
                             const std::vector<StepWindow>& steps) {
    Contention result;
    std::map<int, double> lost;
    std::map<int, double> unknown;  // time beside communication of kernels that have no equals alone, by step
    double weights = 0, weighted = 0, errors = 0, most = 0;
    for (const auto& [place, samples] : samplesOf(compute, communication, steps)) {
        const std::optional<KeyLoss> loss = lossOf(samples);
        if (!loss) {
            for (const Sample& s : samples) unknown[s.step] += s.besideNs;
            continue;
        }
        double total = 0;
        for (const Sample& s : samples) {
            if (s.besideNs <= 0) continue;
            total += s.durNs - loss->baseNs;
            lost[s.step] += s.durNs - loss->baseNs;
        }
        weights += loss->totalBesideNs;
        weighted += loss->totalBesideNs * loss->share;
        errors = std::hypot(errors, loss->totalBesideNs * loss->error);
        result.samples += loss->samples;
        if (total <= most) continue;
        most = total;
        result.key = place.first;
        result.keyAloneNs = loss->baseNs;
        result.keyBesideNs = loss->besideNs;
    }
    if (weights > 0) {
        result.lostShare = std::min(weighted / weights, 0.95);
        result.lostShareError = errors / weights;
        // The others are taken to lose the share that these were seen to lose.
        for (const auto& [step, ns] : unknown) lost[step] += ns * result.lostShare;
    }
    result.lostNs.assign(lost.begin(), lost.end());
    return result;
}

}  // namespace rankscope::facts
