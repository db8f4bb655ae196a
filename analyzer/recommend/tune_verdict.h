// SPDX-License-Identifier: Apache-2.0
// What repeated runs with and without a setting say about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/facts/statistics.h"
#include "analyzer/recommend/tune_candidate.h"

namespace rankscope::recommend {

/// One run of the job: the unit of the comparison. Steps inside a run share whatever made it fast or slow, and are no
/// repetitions (Kalibera and Jones, Rigorous Benchmarking in Reasonable Time, ISMM 2013).
struct TuneRun {
    std::string name;   ///< run directory, relative to the tuning's
    int round = 0;      ///< from 1
    double stepNs = 0;  ///< median of the analysed steps
    int steps = 0;
    double wallS = 0;
};

enum class TuneVerdict { helps, noDifference, slower, tooFewRounds, failed };
std::string_view toText(TuneVerdict verdict);

/// Gain per step of a candidate over the default, > 0 is faster.
struct TuneGain {
    int rounds = 0;  ///< in which both ran
    facts::Estimate gainNs;
};

struct MeasuredCandidate {
    TuneCandidate candidate;
    std::vector<TuneRun> runs;
    std::string failure;          ///< why it was given up; empty: it was not
    bool changedNothing = false;  ///< NCCL used the algorithms and protocols of the default for the same collectives
    std::optional<TuneGain> gain;
    TuneVerdict verdict = TuneVerdict::tooFewRounds;
};

struct TuneRules {
    double confidence = 0.95;     ///< of all verdicts together
    double minGainShare = 0.005;  ///< of the default's step: less is not worth a setting
};

/// Mean of the differences between the two runs of each round, with Student's interval for paired values. Pairing takes
/// out what drifts from round to round. Nothing with fewer than two common rounds. `confidence` is of this interval
/// alone.
std::optional<TuneGain> pairedGain(const std::vector<TuneRun>& standard, const std::vector<TuneRun>& candidate,
                                   double confidence);

struct TuneResult {
    TuneRules rules;
    std::vector<TuneRun> standard;  ///< without a candidate
    double stepNs = 0;              ///< median over the runs
    double noiseNs = 0;             ///< standard deviation over the runs; 0 with fewer than two
    std::vector<MeasuredCandidate> candidates;
    std::optional<size_t> winner;  ///< the candidate that helps most
};

/// Confidence of each interval so that all of them hold together with `rules.confidence` (Bonferroni).
double intervalConfidence(const TuneRules& rules, size_t candidates);

/// Fills in gains, verdicts and the winner: a candidate helps when the whole interval of its gain is above 0 and the
/// gain is at least `minGainShare` of the step.
void judge(TuneResult& result);

}  // namespace rankscope::recommend
