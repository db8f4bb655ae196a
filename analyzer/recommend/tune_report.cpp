// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/facts/statistics.h"
#include "analyzer/recommend/tune.h"
#include "analyzer/text/json_text.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::recommend {
namespace {

double deviationOf(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    const double mean = facts::mean(values);
    double squares = 0;
    for (double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

TuneVerdict verdictOf(const MeasuredCandidate& measured, double stepNs, const TuneRules& rules) {
    if (!measured.failure.empty()) return TuneVerdict::failed;
    if (!measured.gain) return TuneVerdict::tooFewRounds;
    constexpr double kLeastLossShare =
        0.0005;  // what is told as -0.0 % is no loss, however well runs repeat each other
    if (measured.gain->gainNs.high < 0 && measured.gain->gainNs.expected <= -kLeastLossShare * stepNs)
        return TuneVerdict::slower;
    const bool beyondNoise = measured.gain->gainNs.low > 0;
    return beyondNoise && measured.gain->gainNs.expected >= rules.minGainShare * stepNs ? TuneVerdict::helps
                                                                                        : TuneVerdict::noDifference;
}

using text::arrayOf;
using text::Json;
using text::orNull;
using text::whole;

/// "3.1 ms (1.2 %), 2.9 ms to 3.3 ms"
std::string gainText(const TuneGain& gain, double stepNs) {
    return fmt::format("{} ({}{}), {} to {}", text::durationText(gain.gainNs.expected),
                       gain.gainNs.expected < 0 ? "-" : "", text::percentText(std::abs(gain.gainNs.expected) / stepNs),
                       text::durationText(gain.gainNs.low), text::durationText(gain.gainNs.high));
}

std::string verdictText(const MeasuredCandidate& measured) {
    if (measured.verdict == TuneVerdict::helps) return "helps";
    if (measured.verdict == TuneVerdict::slower) return "slower than the default";
    if (measured.verdict == TuneVerdict::failed) return "failed and was dropped: " + measured.failure;
    if (measured.verdict == TuneVerdict::tooFewRounds) return "too few rounds to tell";
    if (measured.changedNothing) return "no difference: NCCL chose as by default";
    return measured.gain && measured.gain->gainNs.low > 0 ? "too little to be worth a setting"
                                                          : "no difference beyond noise";
}

std::string predictionText(const MeasuredCandidate& measured) {
    const auto& predicted = measured.candidate.predictedSavingNs;
    if (!predicted) return {};
    std::string text = "predicted " + text::durationText(*predicted);
    if (const auto& interval = measured.candidate.predictedIntervalNs)
        text += fmt::format(" ({} to {})", text::durationText(interval->first), text::durationText(interval->second));
    if (!measured.gain) return text;
    const double error = measured.gain->gainNs.expected - *predicted;
    return text + fmt::format(", measured {} {}", text::durationText(std::abs(error)), error < 0 ? "less" : "more");
}

std::string lines(const std::vector<std::string>& notes) {
    std::string text;
    for (const std::string& note : notes) text += note + "\n";
    return text;
}

std::string keepText(const TuneReport& report) {
    const TuneResult& result = report.result;
    if (result.winner) return fmt::format("Keep: {}\n", result.candidates[*result.winner].candidate.name);
    if (result.candidates.empty()) return "Keep the default.\n";
    return fmt::format("Keep the default: nothing beats it by more than its noise and {} of the step.\n",
                       text::percentText(result.rules.minGainShare));
}

Json runsJson(const std::vector<TuneRun>& runs) {
    return arrayOf(runs, [](const TuneRun& run) {
        return Json{{"name", run.name},
                    {"round", run.round},
                    {"step_ns", whole(run.stepNs)},
                    {"steps", run.steps},
                    {"wall_s", std::round(run.wallS * 1000) / 1000}};
    });
}

Json candidateJson(const MeasuredCandidate& measured, double stepNs) {
    const TuneCandidate& candidate = measured.candidate;
    Json parts = {{"name", candidate.name}, {"env", Json::object()}, {"tuner_csv", Json::array()}};
    for (const auto& [name, value] : candidate.environment) parts["env"][name] = orNull(value);
    for (const TunerRow& row : candidate.tunerRows) parts["tuner_csv"].push_back(formatTunerRow(row));
    parts["verdict"] = toText(measured.verdict);
    parts["failure"] = orNull(measured.failure);
    parts["nccl_chose_as_by_default"] = measured.changedNothing;
    parts["rounds"] = measured.gain ? measured.gain->rounds : 0;
    parts["gain_ns"] = measured.gain ? Json(whole(measured.gain->gainNs.expected)) : Json(nullptr);
    parts["gain_interval_ns"] =
        measured.gain ? Json({whole(measured.gain->gainNs.low), whole(measured.gain->gainNs.high)}) : Json(nullptr);
    parts["gain_share"] = measured.gain && stepNs > 0 ? Json(measured.gain->gainNs.expected / stepNs) : Json(nullptr);
    parts["predicted_saving_ns"] = text::wholeOrNull(candidate.predictedSavingNs);
    const auto& interval = candidate.predictedIntervalNs;
    parts["predicted_interval_ns"] = interval ? Json({whole(interval->first), whole(interval->second)}) : Json(nullptr);
    const bool comparable = candidate.predictedSavingNs && measured.gain && stepNs > 0;
    parts["prediction_error_share"] =
        comparable ? Json((measured.gain->gainNs.expected - *candidate.predictedSavingNs) / stepNs)
                   : Json(nullptr);  // of the default's step
    parts["runs"] = runsJson(measured.runs);
    return parts;
}

}  // namespace

std::string_view toText(TuneVerdict verdict) {
    constexpr std::string_view kNames[] = {"helps", "no_difference", "slower", "too_few_rounds", "failed"};
    return kNames[static_cast<size_t>(verdict)];
}

std::optional<TuneGain> pairedGain(const std::vector<TuneRun>& standard, const std::vector<TuneRun>& candidate,
                                   double confidence) {
    std::vector<double> gains;
    for (const TuneRun& with : candidate)
        for (const TuneRun& without : standard)
            if (with.round == without.round) gains.push_back(without.stepNs - with.stepNs);
    if (gains.size() < 2) return std::nullopt;
    TuneGain gain;
    gain.rounds = static_cast<int>(gains.size());
    gain.gainNs = facts::Estimate::around(facts::mean(gains), facts::studentTwoSided(confidence, gain.rounds - 1) *
                                                                  deviationOf(gains) / std::sqrt(gain.rounds));
    return gain;
}

double intervalConfidence(const TuneRules& rules, size_t candidates) {
    return 1 - (1 - rules.confidence) / static_cast<double>(std::max<size_t>(1, candidates));
}

void judge(TuneResult& result) {
    std::vector<double> steps;
    for (const TuneRun& run : result.standard) steps.push_back(run.stepNs);
    result.stepNs = facts::median(steps);
    result.noiseNs = deviationOf(steps);
    result.winner.reset();
    const double confidence = intervalConfidence(result.rules, result.candidates.size());
    for (size_t i = 0; i < result.candidates.size(); ++i) {
        MeasuredCandidate& measured = result.candidates[i];
        measured.gain = pairedGain(result.standard, measured.runs, confidence);
        measured.verdict = verdictOf(measured, result.stepNs, result.rules);
        if (measured.verdict != TuneVerdict::helps) continue;
        if (!result.winner || measured.gain->gainNs.expected > result.candidates[*result.winner].gain->gainNs.expected)
            result.winner = i;
    }
}

std::string renderTuneText(const TuneReport& report) {
    const TuneResult& result = report.result;
    if (result.candidates.empty()) return lines(report.notes) + keepText(report);
    if (result.standard.empty())
        return fmt::format("{}: no round was run.\n", report.name) + lines(report.notes) + keepText(report);
    std::string text = fmt::format("{}: step of {} by default, {}", report.name, text::durationText(result.stepNs),
                                   text::countedText(result.standard.size(), "run"));
    if (result.standard.size() > 1)
        text += fmt::format(" that differ by {} (standard deviation)", text::durationText(result.noiseNs));
    text += "\n\n";
    for (size_t i = 0; i < result.candidates.size(); ++i) {
        const MeasuredCandidate& measured = result.candidates[i];
        text += fmt::format("{} {}\n", result.winner && *result.winner == i ? "*" : " ", measured.candidate.name);
        if (measured.gain && measured.failure.empty())
            text += fmt::format("    gain per step {}, {} rounds\n", gainText(*measured.gain, result.stepNs),
                                measured.gain->rounds);
        if (const std::string predicted = predictionText(measured); !predicted.empty())
            text += fmt::format("    {}\n", predicted);
        text += fmt::format("    {}\n", verdictText(measured));
    }
    text += fmt::format(
        "\nGains are means of run against run in the same round, with {} intervals for all of them together; a run "
        "counts as the median of its steps.\n",
        text::percentText(result.rules.confidence));
    return text + lines(report.notes) + keepText(report);
}

std::string renderTuneJson(const TuneReport& report) {
    const TuneResult& result = report.result;
    Json json;
    json["schema"] = "rankscope.tune/1";
    json["name"] = report.name;
    json["command"] = report.command;
    json["virtual"] = report.virtualGpus;
    json["rounds"] = report.rounds;
    json["method"] = {{"unit", "run"},
                      {"statistic", "median of the analysed steps"},
                      {"interval", "Student's t of paired runs of a round, Bonferroni over the candidates"},
                      {"confidence", result.rules.confidence},
                      {"min_gain_share", result.rules.minGainShare}};
    json["default"] = {
        {"step_ns", whole(result.stepNs)}, {"noise_ns", whole(result.noiseNs)}, {"runs", runsJson(result.standard)}};
    json["candidates"] = arrayOf(
        result.candidates, [&](const MeasuredCandidate& measured) { return candidateJson(measured, result.stepNs); });
    json["winner"] = result.winner ? Json(result.candidates[*result.winner].candidate.name) : Json(nullptr);
    json["keep_default"] = !result.winner;
    json["files"] = {{"env", orNull(report.environmentFile)}, {"tuner_csv", orNull(report.tunerFile)}};
    json["notes"] = report.notes;
    return text::jsonText(json);
}

}  // namespace rankscope::recommend
