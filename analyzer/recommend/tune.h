// SPDX-License-Identifier: Apache-2.0
// Settings to measure a job with, and what repeated runs with and without them say.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/facts/statistics.h"
#include "analyzer/recommend/tuner_csv.h"

namespace rankscope::recommend {

/// Settings to measure a job with.
struct TuneCandidate {
    std::string name;                                               ///< as it is shown
    std::map<std::string, std::optional<std::string>> environment;  ///< nothing: unset it
    std::vector<TunerRow> tunerRows;
    std::optional<double> predictedSavingNs;  ///< per step
    std::optional<std::pair<double, double>> predictedIntervalNs;
};

/// "NCCL_ALGO=allreduce:tree,NCCL_PROTO=^LL,LL128": settings apart by commas; a comma inside a value is one that no
/// NAME= follows. Throws store::Error.
TuneCandidate parseCandidate(const std::string& text);

/// Either a candidate per line, as above, or JSON: what `rankscope recommend --format json` prints, or {"candidates":
/// […]} with entries of the same form (title, env, tuner_csv, predicted_saving_ns, interval_ns). Entries that set
/// neither a variable nor a tuner row are left out and named in `leftOut`. Throws store::Error with the line or key.
std::vector<TuneCandidate> parseCandidates(const std::string& file, const std::string& text,
                                           std::vector<std::string>& leftOut);

/// For `.` in a shell: export and unset lines, with a mark in front that may make them comments.
std::string shellLines(const std::map<std::string, std::optional<std::string>>& environment,
                       std::string_view mark = "");

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

/// Holds what a report says of a tuning besides its numbers.
struct TuneReport {
    std::string name;
    std::vector<std::string> command;
    bool virtualGpus = false;
    int rounds = 0;                          ///< asked for
    std::vector<std::string> notes;          ///< why there are fewer, what was left out
    std::string environmentFile, tunerFile;  ///< where the winner is kept; empty: nothing to keep
    TuneResult result;
};

std::string renderTuneText(const TuneReport& report);
/// Schema rankscope.tune/1.
std::string renderTuneJson(const TuneReport& report);

}  // namespace rankscope::recommend
