// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/comparability.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "analyzer/compare/side_means.h"
#include "analyzer/text/lists.h"

namespace rankscope::compare {
namespace {

enum class Consequence { refuse, refuseCategories, note };

/// Names what is compared of two environments. An unknown value differs from nothing.
struct Rule {
    const char* key;     // of RunSummary::environment
    const char* across;  // name for --across; empty: cannot be chosen
    const char* what;    // for a reader
    Consequence consequence;
};

constexpr Rule kRules[] = {
    {"world_size", "world-size", "world size", Consequence::refuse},
    {"gpu", "gpu", "GPU", Consequence::refuse},
    {"virtual", "virtual", "virtual GPUs", Consequence::refuse},
    {"layout", "layout", "layout", Consequence::refuse},
    {"ranks_per_host", "hosts", "ranks on a host", Consequence::refuse},
    {"step_source", "steps", "where a step begins", Consequence::refuse},
    {"source", "", "source of the trace", Consequence::refuseCategories},
    {"nccl", "", "NCCL", Consequence::note},
    {"cuda", "", "CUDA", Consequence::note},
    {"schedule", "", "pipeline schedule", Consequence::note},
    {"zero", "", "ZeRO stage", Consequence::note},
};

/// Adds a row for the first difference in kind of the runs of a side.
void refuseMixedKinds(const std::vector<RunSummary>& runs, const char* side, const std::set<std::string>& across,
                      Comparability& result) {
    for (const Rule& rule : kRules) {
        if (rule.consequence != Consequence::refuse || across.count(rule.across)) continue;
        for (const RunSummary& run : runs) {
            const std::string first = text::valueAt(runs.front().environment, rule.key),
                              value = text::valueAt(run.environment, rule.key);
            if (first == value || first.empty() || value.empty() || std::string(rule.key) == "layout") continue;
            result.stepTimeRefused = true;
            if (result.mixed.empty())
                result.mixed = fmt::format("the runs of the {} side are not of one kind: {} is {} in {} and {} in {}",
                                           side, rule.what, first, runs.front().name, value, run.name);
            result.rows.push_back(
                {fmt::format("{} among the runs of the {} side", rule.what, side), first, value, true,
                 fmt::format("the step time is not compared (--across {} compares it all the same)", rule.across)});
            return;
        }
    }
}

Incomparable rowOf(const Rule& rule, const std::string& base, const std::string& now, bool allowed) {
    Incomparable row{rule.what, base, now, rule.consequence == Consequence::refuse && !allowed, ""};
    if (row.refused)
        row.consequence =
            fmt::format("the step time is not compared (--across {} compares it all the same)", rule.across);
    else if (rule.consequence == Consequence::refuseCategories)
        row.consequence = "the step time is compared; times by category are not";
    else
        row.consequence = allowed ? "compared all the same, as asked" : "compared; it may be the reason for a change";
    return row;
}

std::string orNone(const std::string& text) {
    return text.empty() ? "none" : text;
}

/// Lost records and missing sources make categories of a step untrue, not its length.
void addLosses(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now, Comparability& result) {
    const auto refuse = [&](const char* what, const std::string& a, const std::string& b) {
        result.rows.push_back(
            {what, orNone(a), orNone(b), false, "the step time is compared; times by category are not"});
        if (result.categoriesRefused.empty())
            result.categoriesRefused =
                fmt::format("{}: {} on the base side, {} on the new side", what, orNone(a), orNone(b));
    };
    const auto lost = [](const std::vector<RunSummary>& runs) {
        std::vector<std::string> names;
        for (const RunSummary& run : runs)
            if (run.deviceLoss) names.push_back(run.name);
        return text::joined(names);
    };
    const auto all = [](const std::vector<RunSummary>& runs, const char* key) {
        std::set<std::string> values;
        for (const RunSummary& run : runs) values.insert(text::valueAt(run.environment, key));
        values.erase("");
        return text::joined(values);
    };
    if (const std::string a = lost(base), b = lost(now); !a.empty() || !b.empty()) refuse("lost device records", a, b);
    if (const std::string a = all(base, "missing_sources"), b = all(now, "missing_sources"); a != b)
        refuse("sources that were not live", a, b);
    if (const std::string a = all(base, "loss"), b = all(now, "loss"); a != b)
        result.rows.push_back({"loss", orNone(a), orNone(b), false, "compared; see the losses"});
}

/// Kinds of loss that capture_decoder.cpp and trace_builder.cpp give to a recording without its end.
constexpr std::string_view kUnfinished[] = {"died", "missing_rank", "running", "unknown_end", "unreadable_file"};

bool isUnfinished(const report::LossRow& loss) {
    return text::contains(kUnfinished, loss.kind);
}

bool isWhole(const RunSummary& run) {
    return std::ranges::none_of(run.losses, isUnfinished);
}

/// "B: 5 of 12 steps"
std::string shortRuns(const std::vector<RunSummary>& runs, int whole) {
    std::vector<std::string> texts;
    for (const RunSummary& run : runs)
        if (!isWhole(run) && run.steps < whole)
            texts.push_back(fmt::format("{}: {} of {} steps", run.name, run.steps, whole));
    return text::joined(texts);
}

/// A row when a run that did not finish has fewer steps than every run that did: its steps are the first ones, and
/// those that went wrong are lost. Nothing where no run is whole. `across`: compared all the same.
std::vector<Incomparable> lostSteps(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                                    bool across) {
    std::optional<int> whole;  // the fewest steps of one that is
    for (const auto* side : {&base, &now})
        for (const RunSummary& run : *side)
            if (isWhole(run)) whole = std::min(whole.value_or(run.steps), run.steps);
    if (!whole) return {};
    const std::string a = shortRuns(base, *whole), b = shortRuns(now, *whole);
    if (a.empty() && b.empty()) return {};
    return {{"steps lost by runs that did not finish", orNone(a), orNone(b), !across,
             across ? "compared all the same, as asked"
                    : "the step time is not compared (--across unfinished compares it all the same)"}};
}

}  // namespace

std::vector<std::string> acrossNames() {
    std::vector<std::string> names;
    for (const Rule& rule : kRules)
        if (*rule.across) names.push_back(rule.across);
    names.push_back("unfinished");
    return names;
}

std::vector<std::string> differencesOfKind(const RunSummary& base, const RunSummary& now,
                                           const std::set<std::string>& across) {
    std::vector<std::string> differences;
    for (const Rule& rule : kRules) {
        if (rule.consequence != Consequence::refuse || across.count(rule.across)) continue;
        const std::string before = text::valueAt(base.environment, rule.key),
                          after = text::valueAt(now.environment, rule.key);
        if (before != after && !before.empty() && !after.empty())
            differences.push_back(fmt::format("{} is {} and {}", rule.what, before, after));
    }
    return differences;
}

Comparability checkComparability(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                                 const std::set<std::string>& across) {
    Comparability result;
    refuseMixedKinds(base, "base", across, result);
    refuseMixedKinds(now, "new", across, result);
    for (const Rule& rule : kRules) {
        const std::string a = commonValue(base, rule.key), b = commonValue(now, rule.key);
        if (a == b || a.empty() || b.empty()) continue;
        const Incomparable row = rowOf(rule, a, b, *rule.across && across.count(rule.across));
        result.stepTimeRefused = result.stepTimeRefused || row.refused;
        if (rule.consequence == Consequence::refuseCategories)
            result.categoriesRefused = fmt::format("{} is {} in the base and {} in the new runs", rule.what, a, b);
        result.rows.push_back(row);
    }
    for (Incomparable& row : lostSteps(base, now, across.count("unfinished") != 0)) {
        result.stepTimeRefused = result.stepTimeRefused || row.refused;
        result.rows.push_back(std::move(row));
    }
    addLosses(base, now, result);
    return result;
}

std::string unfinishedText(const RunSummary& run) {
    std::string text;
    size_t count = 0;
    for (const report::LossRow& loss : run.losses)
        if (isUnfinished(loss) && count++ == 0) text = loss.meaning;
    // Of several deaths the one to look at.
    const auto first = std::ranges::find(run.losses, "first_death", &report::LossRow::kind);
    if (count > 1 && first != run.losses.end()) return first->meaning;
    return count > 1 ? fmt::format("{}; and {} more like it", text, count - 1) : text;
}

std::vector<std::string> unfinishedNotices(const std::vector<RunSummary>& runs, const char* side) {
    std::vector<std::string> notices;
    for (const RunSummary& run : runs)
        if (!isWhole(run))
            notices.push_back(fmt::format("{} run {} did not finish: {}", side, run.name, unfinishedText(run)));
    return notices;
}

}  // namespace rankscope::compare
