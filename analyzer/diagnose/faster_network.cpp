// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/faster_network.h"

#include <algorithm>

namespace rankscope::diagnose {

std::vector<double> transfersOf(const CriticalStep& step) {
    std::vector<double> transfers;
    for (const facts::CommTask& task : step.tasks) transfers.push_back(static_cast<double>(task.transferNs()));
    return transfers;
}

double savingOf(const CriticalStep& step, const std::vector<double>& newTransferNs) {
    double saved = 0;
    for (size_t begin = 0; begin < step.tasks.size();) {
        size_t end = begin + 1;
        // A launch gap between two messages is no pause of the network.
        while (end < step.tasks.size() && step.tasks[end].idleNetworkBeforeNs <= facts::RankSummary::kShortestGapNs &&
               step.tasks[end].startNs - step.tasks[end - 1].endNs <= facts::RankSummary::kShortestGapNs)
            ++end;
        double gained = 0, exposed = 0;
        for (size_t i = begin; i < end; ++i) {
            gained += static_cast<double>(step.tasks[i].transferNs()) - newTransferNs[i];
            exposed += static_cast<double>(step.tasks[i].exposedTransferNs);
        }
        const facts::CommTask& last = step.tasks[end - 1];
        const auto hidden = static_cast<double>(last.transferNs() - last.exposedTransferNs);
        const double rest = std::max(0.0, newTransferNs[end - 1] - hidden);
        saved += std::max(0.0, std::min(gained, exposed - rest));
        begin = end;
    }
    return saved;
}

}  // namespace rankscope::diagnose
