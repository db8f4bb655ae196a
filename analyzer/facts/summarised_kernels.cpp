// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/summarised_kernels.h"

#include <algorithm>
#include <map>

namespace rankscope::facts {
namespace {

/// A part of a span, as much as a step has of it.
struct SpanShare {
    const store::KernelSpan* span = nullptr;
    double share = 1;
};

/// Of each span that the step meets as much as lies in it: what a span holds is taken for spread evenly.
std::vector<SpanShare> spansOf(const std::vector<store::KernelSpan>& spans, const StepWindow& step) {
    std::vector<SpanShare> result;
    auto at = std::ranges::upper_bound(spans, step.startNs, {}, &store::KernelSpan::startNs);
    if (at != spans.begin()) --at;
    for (; at != spans.end() && at->startNs < step.endNs(); ++at) {
        const int64_t sharedNs = std::min(step.endNs(), at->startNs + at->durNs) - std::max(step.startNs, at->startNs);
        if (sharedNs > 0) result.push_back({&*at, static_cast<double>(sharedNs) / static_cast<double>(at->durNs)});
    }
    return result;
}

/// The kernels of one key in one step, of several spans as a rule one.
struct Sum {
    double count = 0, totalNs = 0, medians = 0;

    void add(const store::KernelSummary& row, double share) {
        const double of = share * static_cast<double>(row.count);
        count += of;
        totalNs += share * static_cast<double>(row.totalNs);
        medians += of * static_cast<double>(row.medianNs);
    }
};

int64_t partOf(int64_t ns, double share) {
    return static_cast<int64_t>(static_cast<double>(ns) * share);
}

/// Where the time went, in place of what calls alone told. Returns which part of the communication is exposed.
double setTimes(const std::vector<SpanShare>& spans, Attribution& step) {
    double compute = 0, nccl = 0, busy = 0;
    for (const SpanShare& part : spans) {
        if (!part.span->computeNs || !part.span->ncclNs || !part.span->busyNs) return 1;
        compute += part.share * static_cast<double>(*part.span->computeNs);
        nccl += part.share * static_cast<double>(*part.span->ncclNs);
        busy += part.share * static_cast<double>(*part.span->busyNs);
    }
    busy = std::min(busy, static_cast<double>(step.stepNs));
    compute = std::min(compute, busy);
    // What is known of calls is from NCCL's plugin, which may be older than their times on the device.
    const int64_t toldNs = step.exposedCommNs();
    const double exposed = busy - compute;
    const double share = toldNs > 0 ? std::min(1.0, exposed / static_cast<double>(toldNs)) : 1;
    step.computeNs = static_cast<int64_t>(compute);
    step.exposedWaitNs = partOf(step.exposedWaitNs, share);
    step.exposedTransferNs = static_cast<int64_t>(exposed) - step.exposedWaitNs;
    step.lateTransferNs = std::min(step.exposedTransferNs, partOf(step.lateTransferNs, share));
    step.unsplitNs = toldNs > 0 ? std::min(step.exposedCommNs(), partOf(step.unsplitNs, share)) : step.exposedCommNs();
    step.overlappedCommNs = std::max<int64_t>(0, static_cast<int64_t>(nccl) - step.exposedCommNs());
    step.memoryNs = 0;
    step.idleNs = step.stepNs - step.computeNs - step.exposedCommNs();
    return share;
}

}  // namespace

void addSummarisedKernels(const RankEvents& events, const std::vector<StepWindow>& steps, RankSummary& summary) {
    if (events.kernelSpans.empty()) return;
    std::map<int, double> exposedByStep;
    std::map<std::pair<KernelKey, int>, Sum> sums;
    for (size_t s = 0; s < steps.size() && s < summary.steps.size(); ++s) {
        const std::vector<SpanShare> spans = spansOf(events.kernelSpans, steps[s]);
        if (spans.empty()) continue;
        exposedByStep[steps[s].step] = setTimes(spans, summary.steps[s]);
        if (steps[s].warmUp) continue;
        for (const SpanShare& part : spans) {
            const auto rows = std::ranges::equal_range(events.kernelSummaries, part.span->startNs, {},
                                                       &store::KernelSummary::startNs);
            for (const store::KernelSummary& row : rows) {
                if (row.nccl != store::NcclKernel::no) continue;
                const KernelKey key{row.nameId, row.gridBlocks, row.blockThreads};
                sums[{key, steps[s].step}].add(row, part.share);
            }
        }
    }
    // The gaps between calls are no idle time; of what is, nothing tells when it was.
    summary.idleGaps.clear();
    std::ranges::fill(summary.idleByCauseNs, 0);
    for (size_t s = 0; s < steps.size() && s < summary.steps.size(); ++s)
        if (!steps[s].warmUp) summary.idleByCauseNs[static_cast<size_t>(IdleCause::other)] += summary.steps[s].idleNs;
    summary.kernels.clear();
    for (const auto& [where, sum] : sums)
        if (sum.count > 0)
            summary.kernels.push_back({where.first, where.second,
                                       std::max(1, static_cast<int32_t>(std::min(sum.count + 0.5, 1e9))),
                                       static_cast<int64_t>(sum.totalNs), sum.medians / sum.count});
    for (CommTask& task : summary.communication) {
        const auto exposed = exposedByStep.find(task.step);
        if (exposed == exposedByStep.end()) continue;
        task.exposedWaitNs = partOf(task.exposedWaitNs, exposed->second);
        task.exposedTransferNs = partOf(task.exposedTransferNs, exposed->second);
        task.lateTransferNs = partOf(task.lateTransferNs, exposed->second);
    }
}

}  // namespace rankscope::facts
