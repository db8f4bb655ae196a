// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/text/json_text.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::compare {
namespace {

using text::arrayOf;
using text::Json;
using text::orNull;

Json intervalJson(const std::optional<facts::Estimate>& interval) {
    return interval ? Json::array({interval->low, interval->high}) : Json(nullptr);
}

Json runJson(const ComparedRun& run) {
    return {{"name", run.name},         {"label", orNull(run.label)},
            {"file", orNull(run.file)}, {"from_baseline", run.fromBaseline},
            {"steps", run.steps},       {"step_ns", run.stepNs},
            {"steps_ns", run.stepsNs},  {"steps_per_sample", run.stepsPerSample}};
}

Json sideJson(const ComparedSide& side) {
    return {{"name", sideName(side)},
            {"runs", arrayOf(side.runs, runJson)},
            {"environment", side.environment},
            {"layout", orNull(side.layout)},
            {"hosts", side.hosts}};
}

Json detectionJson(const Detection& detection) {
    return {{"size", detection.size},
            {"found", detection.found},
            {"runs", detection.runs},
            {"enough_runs", detection.enoughRuns > 0 ? Json(detection.enoughRuns) : Json(nullptr)}};
}

Json stepJson(const StepTimeChange& step) {
    Json json;
    json["verdict"] = toText(step.verdict);
    json["reason"] = step.reason;
    const std::string verdict = fmt::format("{}: ", toText(step.verdict));
    json["text"] = step.reason.substr(step.reason.starts_with(verdict) ? verdict.size() : 0);
    json["base_ns"] = orNull(step.baseNs);
    json["new_ns"] = orNull(step.newNs);
    json["samples_factor"] = step.samples;
    json["new_step_ns"] = orNull(step.newStepNs());
    json["change_ns"] = step.baseNs && step.newNs ? Json(step.changeNs()) : Json(nullptr);
    json["ratio"] = orNull(step.ratio);
    json["interval"] = intervalJson(step.interval);
    json["confidence"] = step.confidence;
    json["smallest_visible"] = orNull(step.smallestVisible);
    json["detection"] = step.detection ? detectionJson(*step.detection) : Json(nullptr);
    json["p"] = orNull(step.pValue);
    json["rank_p"] = orNull(step.rankPValue);
    json["threshold"] = step.threshold;
    json["more_runs"] = step.moreRuns;
    json["estimator"] = step.estimator;
    json["mean_ratio"] = orNull(step.meanRatio);
    json["by_rare_steps"] = step.byRareSteps;
    json["between_runs"] = orNull(step.betweenRuns);
    json["noise_source"] = step.noiseSource;
    json["modes"] = arrayOf(step.modes, [](const StepTimeChange::Modes& modes) {
        return Json{
            {"run", modes.run}, {"low_ns", modes.lowNs}, {"high_ns", modes.highNs}, {"high_share", modes.highShare}};
    });
    return json;
}

Json oddRunJson(const OddRun& odd) {
    return {{"side", odd.side},
            {"run", odd.run},
            {"label", orNull(odd.label)},
            {"step_ns", odd.stepNs},
            {"others_ns", odd.othersNs},
            {"ratio", odd.ratio},
            {"ranks", odd.ranks},
            {"hosts", odd.hosts},
            {"diagnosis", orNull(odd.diagnosis)},
            {"title", orNull(odd.title)},
            {"cause", orNull(odd.cause)}};
}

Json metricJson(const MetricChange& metric) {
    return {{"name", metric.name},
            {"unit", metric.unit},
            {"higher_is_better", metric.higherIsBetter},
            {"base", orNull(metric.base)},
            {"new", orNull(metric.now)},
            {"delta", orNull(metric.delta)},
            {"interval", intervalJson(metric.interval)},
            {"p_corrected", orNull(metric.pValue)},
            {"test", orNull(metric.test)},
            {"significant", metric.significant},
            {"refused", orNull(metric.refused)}};
}

Json breakdownSideJson(const std::optional<BreakdownSide>& side) {
    if (!side) return nullptr;
    return {{"step_ns", side->stepNs},
            {"compute_ns", side->computeNs},
            {"overlapped_comm_ns", side->overlappedCommNs},
            {"exposed_transfer_ns", side->exposedTransferNs},
            {"exposed_wait_ns", side->exposedWaitNs},
            {"memory_ns", side->memoryNs},
            {"idle_ns", side->idleNs}};
}

Json collectiveSideJson(const std::optional<TrafficSummary>& side) {
    if (!side) return nullptr;
    const auto ifKnown = [](double value) { return value > 0 ? Json(value) : Json(nullptr); };
    return {{"count", side->count},           {"bytes", ifKnown(side->bytes)}, {"transfer_ns", side->transferNs},
            {"wait_ns", side->waitNs},        {"busbw", ifKnown(side->busbw)}, {"algo", orNull(side->algorithm)},
            {"proto", orNull(side->protocol)}};
}

Json collectiveJson(const CollectiveChange& row) {
    return {{"role", row.role},
            {"op", row.op},
            {"ranks", row.ranks},
            {"size_class", row.sizeClass},
            {"base", collectiveSideJson(row.base)},
            {"new", collectiveSideJson(row.now)}};
}

Json kernelSideJson(const std::optional<KernelSummary>& side) {
    return side ? Json{{"count", side->count}, {"ns", side->ns}} : Json(nullptr);
}

Json ifThere(const FindingSide& side, const std::optional<double>& ns) {
    return side.isThere ? orNull(ns) : Json(nullptr);
}

Json findingJson(const FindingChange& finding) {
    return {{"status", toText(finding.status)},
            {"id", finding.id},
            {"or", finding.alternatives},
            {"title", finding.title},
            {"where", orNull(finding.where)},
            {"ranks", finding.ranks},
            {"cause", finding.cause},
            {"fix", finding.fix},
            {"base_cost_ns", ifThere(finding.base, finding.base.costNs)},
            {"new_cost_ns", ifThere(finding.now, finding.now.costNs)},
            {"base_saving_ns", ifThere(finding.base, finding.base.savingNs)},
            {"new_saving_ns", ifThere(finding.now, finding.now.savingNs)},
            {"base_runs", finding.base.runs},
            {"new_runs", finding.now.runs},
            {"allowed", finding.allowed},
            {"failed", finding.failed}};
}

Json causeJson(const ChangeCause& cause) {
    return {{"kind", cause.kind},
            {"text", cause.text},
            {"diagnosis", orNull(cause.diagnosis)},
            {"where", orNull(cause.where)},
            {"ranks", cause.ranks},
            {"ns", cause.ns},
            {"evidence", cause.evidence},
            {"covers", orNull(cause.covers)}};
}

Json attributionJson(const AttributionRow& row) {
    return {{"category", toText(row.part)}, {"what", row.what}, {"where", orNull(row.where)},
            {"ranks", row.ranks},           {"ns", row.ns},     {"details", row.details}};
}

Json incomparableJson(const Incomparable& row) {
    return {{"what", row.what},
            {"base", orNull(row.base)},
            {"new", orNull(row.now)},
            {"refused", row.refused},
            {"consequence", row.consequence}};
}

Json growthJson(const std::optional<SlowGrowth>& growth) {
    if (!growth) return nullptr;
    return {{"entries", growth->entries}, {"since", orNull(growth->since)}, {"ratio", growth->ratio}};
}

Json historyJson(const BaselineHistory& history) {
    return {{"runs", history.runs},
            {"of_other_kinds", history.otherKinds},
            {"has_kind", history.hasKind},
            {"moved_before", history.movedBefore},
            {"growth", growthJson(history.growth)},
            {"left_out", arrayOf(history.leftOut,
                                 [](const LeftOutRun& run) {
                                     return Json{{"name", run.name}, {"label", orNull(run.label)}, {"why", run.why}};
                                 })},
            {"levels", arrayOf(history.levels, [](const BaselineLevel& level) {
                 return Json{{"step_ns", level.stepNs},
                             {"runs", level.runs},
                             {"entries", level.entries},
                             {"first", orNull(level.first)},
                             {"last", orNull(level.last)}};
             })}};
}

Json entry(const std::string& family, const std::string& name, const char* kind, size_t repetitions, double ns) {
    // Ranks run on devices: there is no processor time to tell, and compare.py wants one.
    return {{"name", name},    {"run_name", family}, {"run_type", kind}, {"repetitions", repetitions}, {"threads", 1},
            {"iterations", 1}, {"real_time", ns},    {"cpu_time", ns},   {"time_unit", "ns"}};
}

void addSide(const char* side, const ComparedSide& runs, Json& benchmarks) {
    const std::string family = fmt::format("step/{}", side);
    const auto count = static_cast<double>(runs.runs.size());
    double sum = 0, squares = 0;
    for (size_t i = 0; i < runs.runs.size(); ++i) {
        const ComparedRun& run = runs.runs[i];
        Json one = entry(family, family, "iteration", runs.runs.size(), run.stepNs);
        one["repetition_index"] = i;
        one["iterations"] = std::max(1, run.steps);
        one["label"] = text::plainText(run.label.empty() ? run.name : run.label);
        benchmarks.push_back(one);
        sum += run.stepNs;
    }
    if (runs.runs.empty()) return;
    for (const ComparedRun& run : runs.runs) squares += (run.stepNs - sum / count) * (run.stepNs - sum / count);
    const auto aggregate = [&](const char* name, double ns) {
        Json one = entry(family, family + "_" + name, "aggregate", runs.runs.size(), ns);
        one["aggregate_name"] = name;
        one["aggregate_unit"] = "time";
        one["iterations"] = runs.runs.size();
        benchmarks.push_back(one);
    };
    aggregate("mean", sum / count);
    if (runs.runs.size() > 1) aggregate("stddev", std::sqrt(squares / (count - 1)));
}

}  // namespace

std::string renderComparisonJson(const Comparison& c) {
    Json json;
    json["schema"] = "rankscope.compare/1";
    json["title"] = titleText(c);
    json["base"] = sideJson(c.base);
    json["new"] = sideJson(c.now);
    json["baseline"] = c.history ? historyJson(*c.history) : Json(nullptr);
    json["step_time"] = stepJson(c.step);
    json["odd_runs"] = arrayOf(c.oddRuns, oddRunJson);
    json["without_odd_runs"] = c.withoutOdd ? stepJson(*c.withoutOdd) : Json(nullptr);
    json["causes"] = arrayOf(c.causes, causeJson);
    json["attribution"] = arrayOf(c.attribution, attributionJson);
    json["breakdown"] = arrayOf(c.breakdown, [](const BreakdownChange& row) {
        return Json{{"role", row.role},
                    {"rank", row.rank},
                    {"base", breakdownSideJson(row.base)},
                    {"new", breakdownSideJson(row.now)}};
    });
    json["metrics"] = arrayOf(c.metrics, metricJson);
    json["collectives"] = arrayOf(c.collectives, collectiveJson);
    json["kernels"] = arrayOf(c.kernels, [](const KernelChange& row) {
        return Json{{"name", row.name},
                    {"base", kernelSideJson(row.base)},
                    {"new", kernelSideJson(row.now)},
                    {"delta_ns", row.deltaNs}};
    });
    json["findings"] = arrayOf(c.findings, findingJson);
    json["incomparable"] = arrayOf(c.incomparable, incomparableJson);
    json["gate"] = {{"conclusion", toText(c.gate.conclusion)},
                    {"failed", c.gate.failed},
                    {"judged", c.gate.judged},
                    {"exit_status", c.gate.exitStatus},
                    {"fail_on", c.gate.failOn},
                    {"reasons", c.gate.reasons},
                    {"allowed", c.gate.allowed},
                    {"notices", c.gate.notices}};
    json["loss"] = arrayOf(c.losses, [](const ComparedLoss& l) {
        return Json{{"side", l.side},         {"run", l.run},     {"kind", l.kind},
                    {"severity", l.severity}, {"count", l.count}, {"what_it_means", l.meaning}};
    });
    json["notes"] = c.notes;
    return text::jsonText(json);
}

std::string renderComparisonBenchmark(const Comparison& c) {
    Json context = {{"executable", "rankscope compare"},
                    {"library_build_type", "release"},
                    {"num_cpus", 1},
                    {"caches", Json::array()}};
    for (const auto& [name, value] : c.now.environment)
        context["rankscope_" + text::plainText(name)] = text::plainText(value);
    Json benchmarks = Json::array();
    addSide("base", c.base, benchmarks);
    addSide("new", c.now, benchmarks);
    // The rest is what else takes time: means over the runs of a side.
    for (const MetricChange& metric : c.metrics) {
        if (metric.unit != "ns" || metric.name.ends_with("step"))
            continue;  // "mean step/new" would be found by whoever asks for step/new, which tells it already
        const auto add = [&](const char* side, const std::optional<double>& ns, size_t runs) {
            const std::string name = fmt::format("{}/{}", text::plainText(metric.name), side);
            if (ns) benchmarks.push_back(entry(name, name, "iteration", runs, *ns));
        };
        add("base", metric.base, 1);
        add("new", metric.now, 1);
    }
    return text::jsonText({{"context", context}, {"benchmarks", benchmarks}});
}

}  // namespace rankscope::compare
