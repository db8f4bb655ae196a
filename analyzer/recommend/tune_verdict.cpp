// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/tune_verdict.h"

#include <algorithm>
#include <cmath>

#include "analyzer/facts/statistics.h"

namespace rankscope::recommend {
namespace {

double meanOf(const std::vector<double>& values) {
    double sum = 0;
    for (double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

double deviationOf(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    const double mean = meanOf(values);
    double squares = 0;
    for (double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double medianOf(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
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

}  // namespace

std::string_view toText(TuneVerdict verdict) {
    switch (verdict) {
        case TuneVerdict::helps:
            return "helps";
        case TuneVerdict::noDifference:
            return "no_difference";
        case TuneVerdict::slower:
            return "slower";
        case TuneVerdict::tooFewRounds:
            return "too_few_rounds";
        default:
            return "failed";
    }
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
    gain.gainNs = facts::Estimate::around(meanOf(gains), facts::studentTwoSided(confidence, gain.rounds - 1) *
                                                             deviationOf(gains) / std::sqrt(gain.rounds));
    return gain;
}

double intervalConfidence(const TuneRules& rules, size_t candidates) {
    return 1 - (1 - rules.confidence) / static_cast<double>(std::max<size_t>(1, candidates));
}

void judge(TuneResult& result) {
    std::vector<double> steps;
    for (const TuneRun& run : result.standard) steps.push_back(run.stepNs);
    result.stepNs = medianOf(steps);
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

}  // namespace rankscope::recommend
