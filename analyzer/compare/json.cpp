// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "analyzer/compare/renderers.h"

namespace rankscope::compare {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json orNull(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json orNull(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

Json intervalJson(const std::optional<facts::Estimate>& interval) {
    return interval ? Json::array({interval->low, interval->high}) : Json(nullptr);
}

template <typename Rows, typename Function>
Json arrayOf(const Rows& rows, Function&& function) {
    Json array = Json::array();
    for (const auto& row : rows) array.push_back(function(row));
    return array;
}

Json runJson(const ComparedRun& run) {
    return {{"name", run.name},         {"label", orNull(run.label)},
            {"file", orNull(run.file)}, {"from_baseline", run.fromBaseline},
            {"steps", run.steps},       {"step_ns", run.stepNs},
            {"steps_ns", run.stepsNs},  {"steps_per_sample", run.stepsPerSample}};
}

Json sideJson(const ComparedSide& side) {
    return {{"runs", arrayOf(side.runs, runJson)},
            {"environment", side.environment},
            {"layout", orNull(side.layout)},
            {"hosts", side.hosts}};
}

Json stepJson(const StepTimeChange& step) {
    Json json;
    json["verdict"] = toText(step.verdict);
    json["reason"] = step.reason;
    json["base_ns"] = orNull(step.baseNs);
    json["new_ns"] = orNull(step.newNs);
    json["change_ns"] = step.baseNs && step.newNs ? Json(step.changeNs()) : Json(nullptr);
    json["ratio"] = orNull(step.ratio);
    json["interval"] = intervalJson(step.interval);
    json["confidence"] = kConfidence;
    json["smallest_visible"] = orNull(step.smallestVisible);
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

Json collectiveSideJson(const std::optional<CollectiveSide>& side) {
    if (!side) return nullptr;
    return {{"count", side->count},           {"bytes", orNull(side->bytes)}, {"transfer_ns", orNull(side->transferNs)},
            {"wait_ns", side->waitNs},        {"busbw", orNull(side->busbw)}, {"algo", orNull(side->algorithm)},
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

Json kernelSideJson(const std::optional<KernelSide>& side) {
    return side ? Json{{"count", side->count}, {"ns", side->ns}} : Json(nullptr);
}

Json findingJson(const FindingChange& finding) {
    return {{"status", toText(finding.status)},
            {"id", finding.id},
            {"title", finding.title},
            {"where", orNull(finding.where)},
            {"ranks", finding.ranks},
            {"cause", finding.cause},
            {"fix", finding.fix},
            {"base_cost_ns", orNull(finding.baseCostNs)},
            {"new_cost_ns", orNull(finding.newCostNs)},
            {"base_runs", finding.baseRuns},
            {"new_runs", finding.newRuns},
            {"allowed", finding.allowed},
            {"failed", finding.failed}};
}

Json causeJson(const ChangeCause& cause) {
    return {{"kind", toText(cause.kind)},
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

}  // namespace

std::string renderComparisonJson(const Comparison& c) {
    Json json;
    json["schema"] = "rankscope.compare/1";
    json["base"] = sideJson(c.base);
    json["new"] = sideJson(c.now);
    json["step_time"] = stepJson(c.step);
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
    json["gate"] = {{"failed", c.gate.failed},   {"judged", c.gate.judged},   {"fail_on", c.gate.failOn},
                    {"reasons", c.gate.reasons}, {"allowed", c.gate.allowed}, {"notices", c.gate.notices}};
    json["loss"] = arrayOf(c.losses, [](const ComparedLoss& l) {
        return Json{{"side", l.side},         {"run", l.run},     {"kind", l.kind},
                    {"severity", l.severity}, {"count", l.count}, {"what_it_means", l.meaning}};
    });
    json["notes"] = c.notes;
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rankscope::compare
