// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/trend.h"
#include "analyzer/text/json_text.h"

namespace rankscope::compare {
namespace {

using text::arrayOf;
using text::Json;
using text::orNull;

Json trendFindingJson(const TrendFinding& finding) {
    return {{"id", finding.id},
            {"title", finding.title},
            {"where", finding.where.empty() ? "all ranks" : finding.where},
            {"saving_ns", text::wholeOrNull(finding.savingNs)}};
}

Json trendEntryJson(const TrendEntry& entry) {
    return {{"label", orNull(entry.label)},
            {"start_unix_ns", orNull(entry.startUnixNs)},
            {"level", entry.level},
            {"begins_level", entry.beginsLevel},
            {"step_ns", entry.stepNs},
            {"runs", arrayOf(entry.runs,
                             [](const TrendRun& run) {
                                 return Json{{"name", run.name}, {"step_ns", run.stepNs}};
                             })},
            {"findings", arrayOf(entry.findings, trendFindingJson)},
            {"came", arrayOf(entry.came, trendFindingJson)},
            {"went", arrayOf(entry.went, trendFindingJson)}};
}

Json trendKindJson(const TrendOfKind& kind) {
    Json levels = Json::array();
    for (size_t i = 0; i < kind.levels.size(); ++i) {
        const BaselineLevel& level = kind.levels[i];
        levels.push_back({{"first", orNull(level.first)},
                          {"last", orNull(level.last)},
                          {"entries", level.entries},
                          {"runs", level.runs},
                          {"step_ns", level.stepNs},
                          {"ratio", i == 0 ? Json(nullptr) : Json(level.stepNs / kind.levels[i - 1].stepNs)}});
    }
    return {{"name", kind.name},
            {"environment", kind.environment},
            {"step_ns", kind.levels.back().stepNs},
            {"ratio_to_oldest", kind.ratio()},
            {"sentence", trendSentence(kind)},
            {"between_runs", orNull(kind.noise)},
            {"levels", std::move(levels)},
            {"entries", arrayOf(kind.entries, trendEntryJson)},
            {"left_out", arrayOf(kind.leftOut, [](const LeftOutRun& run) {
                 return Json{{"name", run.name}, {"label", orNull(run.label)}, {"why", run.why}};
             })}};
}

}  // namespace

std::string renderTrendJson(const Trend& trend) {
    return text::jsonText({{"schema", "rankscope.trend/1"},
                           {"baseline", trend.baseline},
                           {"runs", trend.runs},
                           {"runs_without_steps", trend.withoutSteps},
                           {"kinds", arrayOf(trend.kinds, trendKindJson)}});
}

}  // namespace rankscope::compare
