// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "analyzer/diagnose/price.h"
#include "analyzer/facts/rank_summary.h"
#include "analyzer/report/sentences.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

/// "data parallel, 8 ranks (dp8)"; "data parallel 2 x tensor parallel 4 (dp2 tp4)"; empty: no degree is known.
std::string degreesText(const facts::Layout& layout) {
    std::string words, letters;
    int split = 0, ranks = 1;
    const auto add = [&](const char* name, const char* letter, const std::optional<int>& degree) {
        if (!degree) return;
        if (*degree > 1 || letters.empty())
            letters += fmt::format("{}{}{}", letters.empty() ? "" : " ", letter, *degree);
        if (*degree <= 1) return;
        words += fmt::format("{}{} {}", split++ == 0 ? "" : " x ", name, *degree);
        ranks = *degree;
    };
    add("data parallel", "dp", layout.dp);
    add("tensor parallel", "tp", layout.tp);
    add("pipeline", "pp", layout.pp);
    add("expert parallel", "ep", layout.ep);
    if (letters.empty()) return {};
    if (split == 0) return fmt::format("one rank ({})", letters);
    if (split == 1) words = fmt::format("{}, {} ranks", words.substr(0, words.rfind(' ')), ranks);
    return fmt::format("{} ({})", words, letters);
}

/// "6 ms" and "6.00 ms": only of a whole number no decimals are written.
bool readAlike(const std::string& a, const std::string& b) {
    const size_t unitA = std::min(a.find(' '), a.size()), unitB = std::min(b.find(' '), b.size());
    return a.substr(unitA) == b.substr(unitB) && std::atof(a.c_str()) == std::atof(b.c_str());
}

constexpr double kWorthSaying = 0.005;  // of the path: less rounds to nothing

}  // namespace

std::string boundText(int64_t ns) {
    return ns < 1'000 ? "under 1 us" : text::durationText(static_cast<double>(ns));
}

std::string stepSourceText(const std::string& source) {
    constexpr std::string_view kNvtx = "nvtx:";
    if (source.starts_with(kNvtx)) return "steps are the ranges " + source.substr(kNvtx.size());
    if (source == "none") return "steps unknown: name them by NVTX ranges ProfilerStep#N";
    if (source == "updates") return "a step ends with the optimizer's update";
    return source == "period" ? "steps by the period of the kernels or collectives" : "steps by " + source;
}

std::string bestSeenText(const Report& report, const job::Finding& finding) {
    // Ranks begin a step at different times: the step that most of the window lies in.
    const StepRow* shown = nullptr;
    int64_t longest = 0;
    for (const StepRow& step : report.steps) {
        const int64_t both = std::min(finding.windowEndNs, step.endNs) - std::max(finding.windowStartNs, step.startNs);
        if (both > longest) {
            longest = both;
            shown = &step;
        }
    }
    const size_t count = finding.steps.size();
    const std::string from = text::durationText(static_cast<double>(finding.windowStartNs));
    const std::string to = text::durationText(static_cast<double>(finding.windowEndNs));
    return fmt::format(
        "best seen {}{} into the recording{}", shown != nullptr ? fmt::format("in step {}, ", shown->index) : "at ",
        readAlike(from, to) ? to : from + " to " + to,
        count > 0 ? fmt::format("; {} show{} it", text::countedText(count, "analysed step"), count == 1 ? "s" : "")
                  : "");
}

std::string layoutText(const facts::Layout& layout) {
    std::string text = degreesText(layout);
    if (text.empty()) return "unknown";
    if (layout.sp && *layout.sp > 1) text += ", sequence parallel";
    if (layout.zero && *layout.zero > 0) text += fmt::format(", ZeRO-{}", *layout.zero);
    if (layout.zero && *layout.zero > 0 && layout.zeroOr)
        text +=
            fmt::format(" or {} ({})", *layout.zeroOr,
                        *layout.zeroOr == 3 ? "parameters stay whole until backward" : "gradients are reduced whole");
    if (layout.replicate && *layout.replicate > 1)
        text += fmt::format(" in {} copies of {} shards (HSDP)", *layout.replicate, layout.shard.value_or(1));
    if (layout.pp && *layout.pp > 1) text += ", schedule " + layout.schedule;
    const facts::Pipeline* pipeline = toldPipeline(layout);
    if (pipeline)
        text += fmt::format(", {} micro-batch{}", pipeline->microBatches, pipeline->microBatches == 1 ? "" : "es");
    if (pipeline && pipeline->virtualStages > 1)
        text += fmt::format(", {} virtual stages a rank", pipeline->virtualStages);
    return text;
}

std::string replayText(const ReplaySection& replay) {
    if (!replay.unavailable.empty()) return "no replay: " + replay.unavailable;
    std::string text = fmt::format(
        "replay of the unchanged step: {} against {} measured (start to start), {:.2f} % off",
        text::durationText(*replay.predictedStepNs), text::durationText(*replay.measuredStepNs), 100 * *replay.error);
    if (!replay.partNote.empty()) text += "; " + replay.partNote;
    return text;
}

std::string criticalPathText(const ReplaySection& replay) {
    if (!replay.unavailable.empty()) return {};
    double lengthNs = 0;
    std::vector<std::pair<double, std::string>> parts;
    for (const auto& [category, ns] : replay.criticalPathNs) {
        lengthNs += ns;
        parts.emplace_back(ns, category);
    }
    if (lengthNs <= 0) return {};
    std::ranges::stable_sort(parts, std::greater{}, [](const auto& entry) { return entry.first; });
    std::string text = "critical path:";
    for (const auto& [ns, category] : parts)
        if (ns >= kWorthSaying * lengthNs)
            text += fmt::format("{} {} {}", text.back() == ':' ? "" : ",", text::percentText(ns / lengthNs), category);
    std::pair<int, double> most{-1, 0};
    for (const auto& [rank, ns] : replay.criticalRanksNs)
        if (ns > most.second) most = {rank, ns};
    if (most.second >= lengthNs)
        text += fmt::format("; all of it on rank {}", most.first);
    else if (most.first >= 0)
        text += fmt::format("; {} of it on rank {}", text::percentText(most.second / lengthNs), most.first);
    return text;
}

std::string ceilingText(const diagnose::Ceiling& ceiling, size_t found) {
    const std::string which =
        ceiling.findings >= found
            ? "All of these together save"
            : fmt::format("{} of them, those that can be replayed, together save", ceiling.findings);
    return fmt::format("{} {} of each step ({}; {} to {}), replayed at once.", which,
                       text::durationText(ceiling.savingNs.expected), text::percentText(ceiling.share),
                       text::durationText(ceiling.savingNs.low), text::durationText(ceiling.savingNs.high));
}

std::string whatIsThereText(const RunSection& run) {
    if (run.isRecorder) return "dumps of PyTorch's flight recorder: the last calls of each rank, and how far they got";
    return "no device activity was recorded: there is nothing to analyse";
}

std::string ranksOnHostsText(const RunSection& run) {
    const size_t recorded = run.ranks.size();
    const bool some = run.worldSize && recorded > 0 && static_cast<size_t>(*run.worldSize) > recorded;
    const size_t all = run.worldSize ? static_cast<size_t>(*run.worldSize) : recorded;
    std::string text =
        some ? fmt::format("{} of {}", recorded <= 8 ? text::ranksText(run.ranks) : fmt::format("{} ranks", recorded),
                           all)
             : text::countedText(all, "rank");
    if (recorded == 0)
        text =
            all > 0 ? text::countedText(all, "rank") + ", none with device activity" : "no rank with device activity";
    if (!run.hosts.empty()) text += " on " + text::countedText(run.hosts.size(), "host");
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
    std::ranges::stable_sort(shares, std::greater{}, [](const auto& entry) { return entry.second; });
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

std::string lastText(const CollectiveRow& row, size_t most) {
    constexpr double kSeldom = 0.05;  // of the instances: chance
    std::string text;
    for (size_t i = 0; i < std::min(most, row.lastRanks.size()); ++i) {
        const double share =
            static_cast<double>(row.lastRanks[i].second) / static_cast<double>(std::max<int64_t>(1, row.count));
        if (share >= kSeldom)
            text += fmt::format("{}rank {} ({:.0f} %)", text.empty() ? "" : ", ", row.lastRanks[i].first, 100 * share);
    }
    if (!text.empty()) return text;
    return row.lastRanks.empty() ? "unknown" : "none mostly";
}

std::string countText(double perStep) {
    return perStep >= 9.95 || perStep == std::floor(perStep) ? fmt::format("{:.0f}", perStep)
                                                             : fmt::format("{:.1f}", perStep);
}

std::string knownDurationText(const std::optional<double>& ns) {
    return ns ? text::durationText(*ns) : "unknown";
}

}  // namespace rankscope::report
