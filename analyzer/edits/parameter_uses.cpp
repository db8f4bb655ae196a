// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/parameter_uses.h"

#include <algorithm>

namespace rankscope::edits {
namespace {

/// Compute done when the kernel begins, ns.
double beginNs(const ComputeLane& compute, int64_t kernel) {
    return kernel > 0 ? static_cast<double>(compute.doneNs[static_cast<size_t>(kernel - 1)]) : 0;
}

}  // namespace

FirstUse firstUse(const replay::TaskGraph& graph, const ComputeLane& compute,
                  const std::vector<replay::TaskId>& transfers) {
    const auto behind = std::lower_bound(compute.kernels.begin(), compute.kernels.end(), transfers.front());
    for (size_t i = static_cast<size_t>(behind - compute.kernels.begin()); i < compute.kernels.size(); ++i) {
        bool waits = false;
        // A copy in front of the kernel may be what waits: what reads the loss back, where parameters are there at the
        // end of the step.
        for (replay::TaskId task = compute.kernels[i];
             task != replay::kNoTask && task > transfers.front() && (i == 0 || task != compute.kernels[i - 1]);
             task = graph.before[task]) {
            for (const replay::Edge& edge : graph.edgesOf(task)) {
                if (static_cast<replay::WaitKind>(edge.kind) != replay::WaitKind::event) continue;
                if (edge.from == transfers.back())
                    return {static_cast<int64_t>(i), true};  // the last one of its stream: for those before it, too
                waits = waits || std::find(transfers.begin(), transfers.end(), edge.from) != transfers.end();
            }
        }
        if (waits) return {static_cast<int64_t>(i), false};
    }
    return {};
}

std::vector<int64_t> parameterUses(const ComputeLane& compute, int64_t firstUse, const std::vector<double>& ends,
                                   const GradientCurve& curve) {
    const double backwardNs =
        static_cast<double>(compute.doneNs[static_cast<size_t>(curve.last())]) - beginNs(compute, curve.first());
    const double forwardNs = beginNs(compute, curve.first()) - beginNs(compute, firstUse);
    std::vector<int64_t> uses;
    double begin = 0;
    for (double end : ends) {
        const double behind = curve.totalBytes() * (1 - begin / ends.back());
        const double done = static_cast<double>(compute.doneNs[static_cast<size_t>(curve.readyAt(behind))]) -
                            beginNs(compute, curve.first());
        const double neededNs = beginNs(compute, firstUse) + forwardNs * (1 - done / backwardNs);
        int64_t kernel = uses.empty() ? firstUse : uses.back();
        while (kernel + 1 < curve.first() &&
               static_cast<double>(compute.doneNs[static_cast<size_t>(kernel)]) <= neededNs)
            ++kernel;
        uses.push_back(kernel);
        begin = end;
    }
    return uses;
}

}  // namespace rankscope::edits
