// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/report/renderers.h"
#include "analyzer/text/json_text.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/terminal_text.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

using text::arrayOf;
using text::Json;
using text::whole;

constexpr size_t kMostShownRanks = 16;  // more are for --format json
constexpr size_t kMostShares = 6;

std::string pathText(const std::vector<replay::PathShare>& shares) {
    double total = 0;
    for (const replay::PathShare& share : shares) total += share.nsPerStep;
    std::string text;
    for (const replay::PathShare& share : text::first(shares, kMostShares)) {
        if (share.nsPerStep < 0.01 * total) break;
        text += fmt::format("{}{} of rank {} {}", text.empty() ? "" : ", ", toText(share.category), share.rank,
                            text::percentText(share.nsPerStep / total));
    }
    return text.empty() ? "unknown" : text;
}

Json timesJson(const edits::RankTimes& times) {
    return {{"compute_ns", whole(times.computeNs)},
            {"waiting_ns", whole(times.waitingNs)},
            {"transfer_ns", whole(times.transferNs)}};
}

Json pathJson(const std::vector<replay::PathShare>& shares) {
    return arrayOf(shares, [](const replay::PathShare& share) {
        return Json{
            {"category", toText(share.category)}, {"rank", share.rank}, {"ns_per_step", whole(share.nsPerStep)}};
    });
}

}  // namespace

std::string renderWhatIfText(const edits::WhatIf& r, const std::vector<std::string>& changes) {
    std::string out = fmt::format("what if {}\n\n", fmt::join(changes, ", then "));
    out += fmt::format("step measured    {} (the replay is {:.2f} % off)\n", text::durationText(r.typicalStepNs),
                       100 * r.replayError);
    out += fmt::format(
        "step changed     {}{}\n", text::durationText(r.typicalStepNs - r.savingNs.expected),
        r.tokens == 1 ? ""
                      : fmt::format(" for the tokens of a step as recorded ({:.3g} times as many in one)", r.tokens));
    const double share = r.typicalStepNs > 0 ? r.savingNs.expected / r.typicalStepNs : 0;
    if (r.savingNs.expected >= 0)
        out += fmt::format("saves            {} per step ({}; {} to {})\n", text::durationText(r.savingNs.expected),
                           text::percentText(share), text::durationText(r.savingNs.low),
                           text::durationText(r.savingNs.high));
    else
        out += fmt::format("costs            {} more per step ({}; {} to {})\n",
                           text::durationText(-r.savingNs.expected), text::percentText(-share),
                           text::durationText(-r.savingNs.high), text::durationText(-r.savingNs.low));
    if (r.replicas != 1)
        out += text::wrapped(
            fmt::format("{:.3g} times the tokens per second: {:.3g} times the ranks, and as many times the tokens in a "
                        "step",
                        r.changedStepNs > 0 ? r.replicas * r.replayedStepNs / r.changedStepNs : 0, r.replicas),
            "throughput       ");
    out += text::wrapped(pathText(r.pathBefore), "critical path    before: ");
    out += text::wrapped(pathText(r.pathAfter), "                 after:  ");
    out += "\nper rank and step    kernels             waiting, all        transfer, all\n";
    for (size_t i = 0; i < std::min(r.before.size(), r.after.size()); ++i) {
        if (i == kMostShownRanks) {
            out += fmt::format("  and {} more ranks: --format json lists them\n", r.before.size() - i);
            break;
        }
        const auto pair = [](double before, double after) {
            return fmt::format("{} -> {}", text::durationText(before), text::durationText(after));
        };
        const edits::RankTimes& before = r.before[i];
        const edits::RankTimes& after = r.after[i];
        out += fmt::format("  rank {:<14}{:<20}{:<20}{}\n", before.rank, pair(before.computeNs, after.computeNs),
                           pair(before.waitingNs, after.waitingNs), pair(before.transferNs, after.transferNs));
    }
    out += text::wrapped(
        "all: hidden behind compute, too, as in analyze's table of collectives; its 'Where the time goes' counts only "
        "what compute does not hide",
        "  ");
    if (!r.assumed.empty()) out += "\nassumed\n";
    for (const std::string& sentence : r.assumed) out += text::wrapped(sentence, "  ");
    return out;
}

std::string renderWhatIfJson(const edits::WhatIf& r, const std::vector<std::string>& changes) {
    Json ranks = Json::array();
    std::map<int, const edits::RankTimes*> after;
    for (const edits::RankTimes& times : r.after) after[times.rank] = &times;
    for (const edits::RankTimes& times : r.before)
        ranks.push_back({{"rank", times.rank},
                         {"before", timesJson(times)},
                         {"after", after.count(times.rank) != 0 ? timesJson(*after[times.rank]) : Json(nullptr)}});
    const Json json = {{"schema", "rankscope.whatif/1"},
                       {"changes", changes},
                       {"measured_step_ns", whole(r.measuredStepNs)},
                       {"replay", {{"predicted_step_ns", whole(r.replayedStepNs)}, {"error", r.replayError}}},
                       {"changed_step_ns", whole(r.changedStepNs)},
                       {"typical_step_ns", whole(r.typicalStepNs)},
                       {"tokens_factor", r.tokens},
                       {"replicas_factor", r.replicas},
                       {"saving_ns_per_step", whole(r.savingNs.expected)},
                       {"saving_share", r.typicalStepNs > 0 ? r.savingNs.expected / r.typicalStepNs : 0},
                       {"saving_interval_ns", {whole(r.savingNs.low), whole(r.savingNs.high)}},
                       {"ranks", ranks},
                       {"critical_path", {{"before", pathJson(r.pathBefore)}, {"after", pathJson(r.pathAfter)}}},
                       {"assumed", r.assumed}};
    return text::jsonText(json);
}

}  // namespace rankscope::report
