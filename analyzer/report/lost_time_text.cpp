// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/lost_time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/diagnose/detect.h"
#include "analyzer/facts/rank_summary.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/text/units.h"

namespace rankscope::report {

std::string ranksOnHostsText(const RunSection& run) {
    const size_t recorded = run.ranks.size();
    const bool some = run.worldSize && recorded > 0 && static_cast<size_t>(*run.worldSize) > recorded;
    const size_t all = run.worldSize ? static_cast<size_t>(*run.worldSize) : recorded;
    std::string text =
        some ? fmt::format("{} of {}", recorded <= 8 ? text::ranksText(run.ranks) : fmt::format("{} ranks", recorded),
                           all)
             : fmt::format("{} rank{}", all, all == 1 ? "" : "s");
    if (recorded == 0)
        text = all > 0 ? fmt::format("{} rank{}, none with device activity", all, all == 1 ? "" : "s")
                       : "no rank with device activity";
    if (!run.hosts.empty()) text += fmt::format(" on {} host{}", run.hosts.size(), run.hosts.size() == 1 ? "" : "s");
    return text + (run.isVirtual ? ", virtual GPUs" : "");
}

std::vector<std::pair<std::string, double>> idleShares(const Report& report) {
    std::map<std::string, double> causes;
    double stepsNs = 0;
    for (const BreakdownRow& row : report.breakdown) {
        stepsNs += static_cast<double>(row.total.stepNs);
        for (const auto& [cause, ns] : row.idleByCauseNs) causes[cause] += static_cast<double>(ns);
    }
    std::vector<std::pair<std::string, double>> shares;
    for (const auto& [cause, ns] : causes)
        if (stepsNs > 0 && ns / stepsNs >= diagnose::PriceThresholds::kNoteShare)
            shares.emplace_back(facts::inWords(cause), ns / stepsNs);
    std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    return shares;
}

std::string idleText(const Report& report) {
    std::string text;
    for (const auto& [words, share] : idleShares(report))
        text += fmt::format("{} {} {}", text.empty() ? "" : ",", words, text::percentText(share));
    return text.empty() ? text : "idle, in % of the step over all ranks:" + text;
}

std::vector<std::string> delayLines(const Report& report) {
    constexpr size_t kMost = 4;
    std::vector<std::string> lines;
    for (const job::Delay& delay : report.delays.byRank) {
        if (lines.size() == kMost || report.run.stepNs <= 0 ||
            delay.nsPerStep() < diagnose::PriceThresholds::kFloorShare * report.run.stepNs)
            break;
        // What is lost to transfers is worth a word from a tenth on.
        const bool both = delay.transferNs >= 0.1 * delay.nsPerStep();
        lines.push_back(
            fmt::format("rank {} costs {} {} of each step ({}): {}", delay.rank, text::ranksText(delay.victims),
                        text::durationText(delay.nsPerStep()), text::percentText(delay.nsPerStep() / report.run.stepNs),
                        both ? fmt::format("{} waiting, {} transfer that would have been hidden",
                                           text::durationText(delay.waitingNs), text::durationText(delay.transferNs))
                             : "waiting for it"));
    }
    return lines;
}

}  // namespace rankscope::report
