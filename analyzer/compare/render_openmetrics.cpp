// SPDX-License-Identifier: Apache-2.0
// OpenMetrics: no two samples of a family with the same labels.
#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/compare/summary_file.h"
#include "analyzer/text/exposition.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::compare {
namespace {

// Each set of labels is a time series: parts of the change beyond these become one.
constexpr size_t kMostParts = 100;

using Labels = text::Exposition::Labels;

/// Names stay different from each other: what is cut off, or is no text, is told by its hash.
std::string shortLabel(const std::string& bytes) {
    constexpr size_t kLongestLabel = 200, kHash = 17;  // of them a blank and 16 digits
    const std::string text = text::plainText(bytes);
    return text.size() <= kLongestLabel && text == bytes
               ? text
               : fmt::format("{} {:016x}", text::shortened(text, kLongestLabel - kHash), contentHash(bytes));
}

/// The families of the page, with names that cannot grow without bound.
class Families {
  public:
    void family(const std::string& name, const std::string& unit, const std::string& help) {
        m_text.gauge(name, unit, help);
    }
    void sample(Labels labels, double value) {
        for (auto& [name, label] : labels) label = shortLabel(label);
        m_text.sample(labels, value);
    }
    std::string end() && { return std::move(m_text).end(); }

  private:
    text::Exposition m_text;
};

void addStep(const Comparison& c, Families& out) {
    out.family("rankscope_run_step_seconds", "seconds", "Typical step of each run.");
    const auto runs = [&](const char* side, const ComparedSide& of) {
        // Runs may share a name: the index tells them apart.
        for (size_t i = 0; i < of.runs.size(); ++i)
            out.sample({{"side", side}, {"index", std::to_string(i)}, {"run", of.runs[i].name}},
                       of.runs[i].stepNs / 1e9);
    };
    runs("base", c.base);
    runs("new", c.now);
    out.family("rankscope_step_seconds", "seconds", "Step of each side: geometric mean over its runs.");
    if (c.step.baseNs) out.sample({{"side", "base"}}, *c.step.baseNs / 1e9);
    if (c.step.newNs) out.sample({{"side", "new"}}, *c.step.newNs / 1e9);
    out.family("rankscope_step_change_ratio", "ratio",
               "Step of the new side over that of the base, with the ends of its interval.");
    if (c.step.ratio) out.sample({{"bound", "estimate"}}, *c.step.ratio);
    if (c.step.interval) {
        out.sample({{"bound", "low"}}, c.step.interval->low);
        out.sample({{"bound", "high"}}, c.step.interval->high);
    }
    out.family("rankscope_smallest_visible_ratio", "ratio",
               "Slow-down that nine of ten such comparisons would find, as a share of the step.");
    if (c.step.smallestVisible) out.sample({}, *c.step.smallestVisible);
    out.family("rankscope_verdict", "", "1 for the verdict on the step time.");
    for (const StepVerdict verdict :
         {StepVerdict::regression, StepVerdict::improvement, StepVerdict::noChange, StepVerdict::notEnoughSamples,
          StepVerdict::undecided, StepVerdict::noBaseline, StepVerdict::incomparable})
        out.sample({{"verdict", std::string(toText(verdict))}}, verdict == c.step.verdict ? 1 : 0);
    out.family("rankscope_gate_failed", "", "1 when the gate failed.");
    out.sample({}, c.gate.failed ? 1 : 0);
    out.family("rankscope_gate_judged", "",
               "0 when there is no baseline or the sides must not be compared, so that the gate neither passed nor "
               "failed.");
    out.sample({}, c.gate.judged ? 1 : 0);
}

void addMetrics(const Comparison& c, const std::string& unit, const std::string& name, const std::string& unitName,
                double factor, Families& out) {
    out.family(name, unitName, "Other numbers of the comparison: means over the runs of a side.");
    for (const MetricChange& metric : c.metrics) {
        if (metric.unit != unit) continue;
        if (metric.base) out.sample({{"metric", metric.name}, {"side", "base"}}, *metric.base * factor);
        if (metric.now) out.sample({{"metric", metric.name}, {"side", "new"}}, *metric.now * factor);
    }
}

void addAttribution(const Comparison& c, Families& out) {
    out.family("rankscope_attribution_seconds", "seconds", "Parts of the step's change; they add up to it.");
    const std::vector<AttributionRow> rows = foldedParts(c.attribution, kMostParts);
    for (size_t i = 0; i < rows.size(); ++i)
        out.sample({{"index", std::to_string(i)},
                    {"category", i < kMostParts ? std::string(toText(rows[i].part)) : "others"},
                    {"what", i < kMostParts ? rows[i].what : "smaller parts"}},
                   rows[i].ns / 1e9);
}

void addFindings(const Comparison& c, Families& out) {
    std::map<std::pair<std::string, std::string>, int> counts;
    for (const FindingStatus status : {FindingStatus::isNew, FindingStatus::gone, FindingStatus::worse,
                                       FindingStatus::better, FindingStatus::same, FindingStatus::present})
        counts[{std::string(toText(status)), ""}] = 0;
    for (const FindingChange& finding : c.findings) {
        ++counts[{std::string(toText(finding.status)), ""}];
        ++counts[{std::string(toText(finding.status)), finding.id}];
    }
    out.family("rankscope_findings", "", "Findings by status; with and without their diagnosis.");
    for (const auto& [key, count] : counts) {
        Labels labels{{"status", key.first}};
        if (!key.second.empty()) labels.emplace_back("diagnosis", key.second);
        out.sample(labels, count);
    }
}

}  // namespace

std::string renderComparisonOpenMetrics(const Comparison& c) {
    Families out;
    addStep(c, out);
    addMetrics(c, "ns", "rankscope_metric_seconds", "seconds", 1e-9, out);
    addMetrics(c, "share", "rankscope_metric_ratio", "ratio", 1, out);
    addMetrics(c, "bytes/s", "rankscope_metric_bytes_per_second", "", 1, out);
    addMetrics(c, "bytes", "rankscope_metric_bytes", "bytes", 1, out);
    addMetrics(c, "steps/s", "rankscope_metric_steps_per_second", "", 1, out);
    addMetrics(c, "count", "rankscope_metric_number", "", 1, out);
    addAttribution(c, out);
    addFindings(c, out);
    return std::move(out).end();
}

}  // namespace rankscope::compare
