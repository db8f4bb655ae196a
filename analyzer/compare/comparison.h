// SPDX-License-Identifier: Apache-2.0
// Two sides of runs compared, as data: rankscope.compare/1. Renderers read this and nothing else. What is unknown is
// std::nullopt and prints as null or 'unknown'. Times are ns per step, unless a name says otherwise; shares and ratios
// are plain numbers (0.03 is 3 %).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/facts/statistics.h"
#include "analyzer/report/step_overview.h"

namespace rankscope::compare {

inline constexpr double kConfidence = 0.95;  // of intervals and claims, if nothing else is said
// A smallest visible change is found in nine of ten comparisons: what a standard normal variable stays below in as
// many.
inline constexpr double kPowerQuantile = 1.2815515655446004;

/// One run as it went into the comparison.
struct ComparedRun {
    std::string name;
    std::string label;          // what it was saved under in a baseline: a commit, say; empty: none
    std::string file;           // where it was read from
    bool fromBaseline = false;  // a summary, no trace
    int steps = 0;              // analysed
    double stepNs = 0;          // typical step, by StepTimeChange::estimator
    // The analysed steps in their order, means over ranks; of long runs means over `stepsPerSample` of them, which have
    // no outliers left to trim: they compare with the mean of others.
    std::vector<double> stepsNs;
    int stepsPerSample = 1;
};

/// The runs on one side, and what they have in common.
struct ComparedSide {
    std::vector<ComparedRun> runs;
    std::map<std::string, std::string>
        environment;     // world_size, gpu, nccl, sources, ...: what comparability is judged by
    std::string layout;  // "dp 4, tp 2"; empty: unknown
    std::vector<std::string> hosts;
    std::optional<report::StepOverview> overview;  // of the run in `overviewRun`; a picture, not part of the JSON;
                                                   // empty: no run of the side has its trace
    std::string overviewRun;                       // the one whose step is nearest to the side's
};

enum class StepVerdict : uint8_t {
    regression,        // slower, and surely
    improvement,       // faster, and surely
    noChange,          // a change of `smallestVisible` would have been seen
    notEnoughSamples,  // noise hides what should be seen, or nothing tells how large noise is
    undecided,         // one of the new runs is slower than the others of them, which are no regression without it
    noBaseline,        // there is no run to compare with
    incomparable,      // the two sides must not be compared by their step time
};
constexpr std::string_view toText(StepVerdict verdict) {
    constexpr std::string_view kNames[] = {"regression", "improvement", "no change",   "not enough samples",
                                           "undecided",  "no baseline", "incomparable"};
    return kNames[static_cast<size_t>(verdict)];
}

/// Runs of a baseline between two changes of the step, which was the same for all of them.
struct BaselineLevel {
    double stepNs = 0;          // geometric mean over its runs
    int runs = 0, entries = 0;  // runs saved together under one label are an entry
    std::string first, last;    // labels of its first and last entry; empty: none
};

/// A run of the baseline that is not compared with, and why: "12.0 % slower than the other runs of its entry".
struct LeftOutRun {
    std::string name, label, why;
};

/// A run that is not like the others of its side: it is told, and what it would decide alone is not decided.
struct OddRun {
    std::string side;  // "base" | "new"
    std::string run, label;
    double stepNs = 0;                    // typical step
    std::vector<double> othersNs;         // of the others of its side
    double ratio = 1;                     // to their geometric mean
    std::vector<int> ranks;               // that are slow in it and not in the others; empty: none stands out
    std::vector<std::string> hosts;       // of those; of the whole run where no rank stands out
    std::string diagnosis, title, cause;  // a finding whose cure is another machine, that the others lack; empty: none
};

/// The step of the newest level grows a little with each entry (slow_growth.h).
struct SlowGrowth {
    int entries = 0;    // the last ones, and the new runs
    std::string since;  // label of the first of them
    double ratio = 1;   // of the new runs to before the first of them, as the line has it
};

/// What else the baseline holds than the base side.
struct BaselineHistory {
    int runs = 0;
    std::vector<LeftOutRun> leftOut;  // runs of the new runs' kind that are not like the others of their entry
    bool movedBefore = false;  // the newest level begins where the new runs tell that the step moved: before them
    std::optional<SlowGrowth> growth;
    int otherKinds = 0;       // runs of another kind of job, left out
    std::string otherKindIs;  // how they differ: "world size is 4 in them and 8 in the new runs"; empty: none
    bool hasKind = true;      // false: none of its runs is of the new runs' kind, and the base side is not either
    std::vector<BaselineLevel> levels;  // of the base side's kind, oldest first; the last one is the base side
};

/// What runs of earlier levels tell of the noise between runs: squares of the logarithm of their typical step around
/// their own level, summed, and the degrees of freedom of that sum.
struct EarlierNoise {
    double squares = 0;
    double degrees = 0;
};

/// How often a regression of a size is found by such a comparison, if the noise is what it looks like.
struct Detection {
    double size = 0;     // of the regression, a share
    double found = 0;    // share of the comparisons that would claim it
    int runs = 0;        // of the new side
    int enoughRuns = 0;  // in place of those, and of as many times more in the base, to find kFoundWell; 0: too many
};
inline constexpr double kFoundWell = 0.95;  // what a gate is expected to find of the regressions it is set to

/// The number the gate decides on.
struct StepTimeChange {
    StepVerdict verdict = StepVerdict::incomparable;
    std::string reason;                   // one sentence for a reader: the verdict with its numbers
    std::optional<double> baseNs, newNs;  // geometric mean over the runs of their typical step
    std::optional<double> ratio;          // new / base
    double samples = 1;  // of a new step for each of a base step: newNs and the ratio are of as many as a base step has
    double confidence = kConfidence;  // of the interval, and of a claim: half of the rest is wrong on either side
    std::optional<facts::Estimate> interval;  // of the ratio; empty: noise between runs is not known
    std::optional<double> smallestVisible;  // share: a slow-down of this size is found in nine of ten such comparisons
    std::optional<Detection> detection;     // of a regression of the size that 'no change' promises to see
    std::optional<double> pValue;           // two-sided t test on the runs
    std::optional<double> rankPValue;       // exact Mann-Whitney test on the runs, where there are enough for it
    double threshold = 0;                   // share: a smaller change is none
    int moreRuns = 0;               // on each side, when samples are not enough; 0: more would not help, or not known
    std::string lacking;            // why nothing can be claimed, for a reader; empty: noise alone decides
    bool fewForExceptions = false;  // the runs are so few that one of another kind (another node, another clock) on one
                                    // side by chance alone is not ruled out
    std::string estimator = "trimmed mean";  // or "mean": of a run's steps
    // Typical steps do not tell the change, slow steps that they leave out do: the mean of all is compared.
    bool byRareSteps = false;
    std::optional<double> meanRatio;    // where typical steps are compared: the same of the means of all steps
    std::optional<double> betweenRuns;  // noise between runs of one side, as a standard deviation, share of the step
    std::string noiseSource;            // "runs of both sides" | "runs of the base" | "runs of the new side" | "none"
    /// Steps that are of two kinds, for example 7.7 and 9.7 ms: such a run has no typical step but its mean.
    struct Modes {
        std::string run;
        double lowNs = 0, highNs = 0;  // centres
        double highShare = 0;          // share of its steps
    };
    std::vector<Modes> modes;

    bool isOpen() const { return verdict == StepVerdict::notEnoughSamples || verdict == StepVerdict::undecided; }
    bool isClaim() const { return verdict == StepVerdict::regression || verdict == StepVerdict::improvement; }
    std::optional<double> newStepNs() const { return newNs ? std::optional(*newNs * samples) : std::nullopt; }
    double changeNs() const { return baseNs && newNs ? *newNs - *baseNs : 0; }
};

/// A secondary number. They do not decide the gate; p values are corrected for how many of them there are (Holm).
struct MetricChange {
    std::string name;  // "exposed communication": unique
    std::string unit;  // "ns" | "share" | "bytes/s" | "steps/s" | "count" | "bytes"
    bool higherIsBetter = false;
    std::optional<double> base, now;          // means over the runs
    std::optional<double> delta;              // now - base
    std::optional<facts::Estimate> interval;  // of delta, of confidence kConfidence, not corrected
    std::optional<double> pValue;             // corrected
    std::string test;                         // "t" | "rank" | "" (not tested: why, in `refused` or too few runs)
    bool significant = false;
    std::string refused;  // why it is not compared; empty: it is
};

/// Tells where a step of one rank goes, mean over the runs of a side. The overlapped communication is part of the
/// compute.
struct BreakdownSide {
    double stepNs = 0, computeNs = 0, overlappedCommNs = 0, exposedTransferNs = 0, exposedWaitNs = 0, memoryNs = 0,
           idleNs = 0;
};

/// One rank of both sides, known by its place in the layout.
struct BreakdownChange {
    std::string role;  // "pp 1, dp 0"
    int rank = 0;      // of the new side where it has it
    std::optional<BreakdownSide> base, now;
};

/// Communication of one use, operation and size class.
struct TrafficSummary {
    std::string use;  // role of the communicator: gradients, ...
    std::string op;
    std::string dataType;   // most common; empty: unknown
    int ranks = 0;          // members of its communicators
    int nodes = 1;          // that one of them spans, at most
    int sizeClass = -1;     // bytes of a message are in [4^class, 4^(class + 1)); -1 unknown
    double count = 0;       // kernels per step, mean over the ranks that take part
    double bytes = 0;       // the same; 0 unknown
    double transferNs = 0;  // the same: what they take beyond waiting
    double waitNs = 0;
    double exposedTransferNs = 0, exposedWaitNs = 0;
    double busbw = 0;                 // bytes per second of a typical message; 0 unknown
    std::string algorithm, protocol;  // most common; empty: unknown
};

/// Collectives of one use, operation and size: matched by what they are for, not by communicator.
struct CollectiveChange {
    std::string
        role;  // gradients | sharded_parameters | activations | experts | pipeline | replicas | control | unknown
    std::string op;
    int ranks = 0;  // members of a communicator
    std::string sizeClass;
    std::optional<TrafficSummary> base, now;  // one may lack it
};

struct KernelSummary {
    std::string name;  // readable
    double count = 0;  // per step, mean over ranks
    double ns = 0;
};

struct KernelChange {
    std::string name;
    std::optional<KernelSummary> base, now;
    double deltaNs = 0;  // per step and rank
};

/// present: found in a new run, and nothing tells whether it is news: fewer than half of the new runs have it, or there
/// is no base.
enum class FindingStatus : uint8_t { isNew, worse, gone, better, present, same };  // what matters most first
constexpr std::string_view toText(FindingStatus status) {
    constexpr std::string_view kNames[] = {"new", "worse", "gone", "better", "present", "same"};
    return kNames[static_cast<size_t>(status)];
}

/// A finding on one side. Times are means per step over its runs, of which one that lacks it counts as 0.
struct FindingSide {
    int runs = 0;                        // that have it as a finding
    int ofRuns = 0;                      // of that side
    bool isThere = false;                // some run has it, if only as a note
    std::optional<double> costNs = 0;    // what its cause was seen to take; empty: some run does not tell
    std::optional<double> savingNs = 0;  // what its repair saves; empty: some run could not play it
};

struct FindingChange {
    FindingStatus status = FindingStatus::same;
    std::string id;                         // RS301; of the new side where it has it
    std::vector<std::string> alternatives;  // that it may as well be, the same
    std::string knownAs;                    // by which it is the same from run to run: that of the base where it has it
    std::string title;                      // of the new side where it has it
    std::string where;                      // "rank 3 (dp 3)"
    std::vector<int> ranks;                 // on the new side where it has it
    std::string cause;
    std::vector<std::string> fix;
    FindingSide base, now;
    bool allowed = false;  // by --allow
    bool failed = false;   // the gate fails because of it

    /// Like is compared with like: savings where both sides could play the repair, else costs.
    static bool bySaving(const FindingSide& base, const FindingSide& now) { return base.savingNs && now.savingNs; }
    bool bySaving() const { return bySaving(base, now); }
    const std::optional<double>& worthNs(const FindingSide& side) const {
        return bySaving() ? side.savingNs : side.costNs;
    }
};

enum class StepPart : uint8_t { compute, transfer, memory, host, launch, gap, wait, idle, rest };
constexpr std::string_view toText(StepPart part) {
    constexpr std::string_view kNames[] = {"compute", "transfer", "memory", "host", "launch",
                                           "gap",     "wait",     "idle",   "rest"};
    return kNames[static_cast<size_t>(part)];
}

/// A part of the step's change. All of them add up to StepTimeChange::changeNs(); what nothing explains is a row of its
/// own.
struct AttributionRow {
    StepPart part = StepPart::rest;
    std::string what;                       // "compute of rank 3": for a reader
    double ns = 0;                          // positive: slower
    std::string where = {};                 // "rank 3 (dp 3)", "stage 1", "all ranks"; empty: the job
    std::vector<int> ranks = {};            // of the new side; empty: all
    std::vector<std::string> details = {};  // kernels or collectives that carry it
    std::string traffic = {};               // of a transfer on critical paths: trafficName()
};

/// Tells what made the difference, in one line.
struct ChangeCause {
    std::string kind;       // "slow_node": why.cpp lists them
    std::string text;       // a sentence
    std::string diagnosis;  // RS301: what `rankscope explain` tells more about; empty: none fits
    std::string where;
    std::vector<int> ranks;
    double ns = 0;                      // of the step's change
    std::vector<std::string> evidence;  // sentences with numbers: what changed in the job
    std::string covers = {};            // AttributionRow::what of the largest row that it explains
};

struct Incomparable {
    std::string what;         // "world size", "layout", "GPU", "NCCL", "sources", "loss", ...
    std::string base, now;    // as text
    bool refused = false;     // the step time is not compared because of it
    std::string consequence;  // "the step time is not compared", "noted only", ...
};

/// What a build is told. docs/compare.md has the table of all cases.
enum class GateConclusion : uint8_t {
    passed,
    failed,
    undecided,  // a regression would fail it, and nothing tells whether there is one
    notJudged,  // there is no baseline, or the sides must not be compared
};
constexpr std::string_view toText(GateConclusion conclusion) {
    constexpr std::string_view kNames[] = {"passed", "failed", "undecided", "not judged"};
    return kNames[static_cast<size_t>(conclusion)];
}

struct GateResult {
    GateConclusion conclusion = GateConclusion::passed;
    bool failed = false;
    bool judged = true;                // false: nothing is known of a regression, and nothing else failed it
    int exitStatus = 0;                // of `rankscope compare`: 1 failed, 3 the sides must not be compared, else 0
    std::vector<std::string> failOn;   // as asked: regression, finding:RS2*, ...
    std::vector<std::string> reasons;  // why it failed
    std::vector<std::string> allowed;  // findings that would have failed it
    std::vector<std::string> notices;  // what the gate could not judge: no baseline, too few runs
};

struct ComparedLoss {
    std::string side;  // "base" | "new"
    std::string run;
    std::string kind, severity;
    int64_t count = 0;
    std::string meaning;
};

struct Comparison {
    ComparedSide base, now;
    std::optional<BaselineHistory> history;  // empty: the base side was named run by run
    StepTimeChange step;
    std::vector<OddRun> oddRuns;
    std::optional<StepTimeChange> withoutOdd;  // the sides without them; empty: there are none, or too few are left
    std::vector<ChangeCause> causes;           // largest first; empty: nothing changed, or nothing is known
    std::vector<AttributionRow> attribution;   // largest first; empty when the step times are not compared
    std::vector<BreakdownChange> breakdown;    // by rank; empty where times by category are not compared
    std::vector<MetricChange> metrics;
    std::vector<CollectiveChange> collectives;
    std::vector<KernelChange> kernels;    // largest change first
    std::vector<FindingChange> findings;  // by status
    std::vector<Incomparable> incomparable;
    GateResult gate;
    std::vector<ComparedLoss> losses;
    std::vector<std::string> notes;  // what a reader should know: a run given twice, rows left out
};

}  // namespace rankscope::compare
