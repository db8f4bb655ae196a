// SPDX-License-Identifier: Apache-2.0
// The report as data: rankscope.report/1. What is unknown is std::nullopt and prints as null or 'unknown'.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/costs/link_peaks.h"
#include "analyzer/diagnose/account.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/facts/layout.h"
#include "analyzer/facts/rank_summary.h"
#include "analyzer/facts/trace_facts.h"
#include "analyzer/job/delays.h"
#include "analyzer/job/finding.h"
#include "analyzer/report/step_overview.h"

namespace rankscope::report {

struct RunSection {
    std::string name;
    std::optional<int> worldSize;    // ranks of the job, recorded or not
    std::vector<int> ranks;          // that left a recording
    std::vector<std::string> hosts;  // those that are named
    std::string source;
    bool isVirtual = false;
    int64_t durationNs = 0;
    int steps = 0;  // analysed
    int warmUpSteps = 0;
    std::string stepSource;  // nvtx:NAME | updates | period | none
    double stepNs = 0;
    std::optional<int64_t> overheadNs;
    bool isRecorder = false;  // dumps of a flight recorder: calls and how far they got, nothing else
    int64_t openCalls = 0;    // of these, the calls that were on their way when they were written
    bool isDump = false;      // a dump of light mode's ring: the job went on
};

/// Ranks begin a step at different times: one that the others wait for may be a step's length behind them.
struct StepRow {
    int index = 0;
    int64_t startNs = 0, endNs = 0;  // the first rank's start, the last rank's end
    int64_t durNs = 0;               // of the rank that takes longest, from its own start to its own end
    bool warmUp = false;
};

struct BreakdownRow {
    int rank = 0;
    std::string host;
    facts::Attribution total;  // sum over the analysed steps
    // False: how much of its exposed communication is waiting is unknown; exposedCommNs() holds.
    bool splitKnown = true;
    std::map<std::string, int64_t> idleByCauseNs;
};

struct Efficiency {
    std::optional<double> parallel, loadBalance, serialisation, transfer;  // shares, 0..1
};

/// Is that of one communicator's members.
struct GroupEfficiency : Efficiency {
    int64_t communicator = 0;
    std::string role;  // gradients | sharded_parameters | activations | experts | pipeline | replicas
    std::vector<int> ranks;
};

struct EfficiencySection : Efficiency {
    std::vector<GroupEfficiency> groups;
};

struct CollectiveRow {
    std::optional<int64_t> communicator;
    std::string communicatorName;  // NCCL's own; empty: none
    std::string group;             // what it is and whose: "tensor parallel 0-3" (facts::communicatorName)
    int ranks = 0;
    std::string op;
    std::string sizeClass;              // "16 MiB to 64 MiB" | "unknown size"
    int64_t count = 0;                  // instances in analysed steps
    std::optional<int64_t> bytes;       // sum
    std::optional<int64_t> waitNs;      // sum over members
    std::optional<int64_t> transferNs;  // sum over instances
    double countPerStep = 0;
    std::optional<double> bytesPerStep;
    // They are of a member and an analysed step, so that the two have one unit.
    std::optional<double> waitNsPerRankStep, transferNsPerRankStep;
    std::optional<double> algbw, busbw;  // bytes per second
    std::string algorithm, protocol;     // empty: unknown
    std::optional<double> alphaNs, crossoverBytes;
    std::string fitSource;
    std::vector<std::pair<int, int64_t>> lastRanks;  // who arrived last how often, most often first
};

struct ReplaySection {
    std::optional<double> predictedStepNs, measuredStepNs;  // mean over the analysed steps, from start to start
    std::optional<double> error;                            // share of the measured step
    std::map<std::string, double> criticalPathNs;           // by category, per step
    std::map<int, double> criticalRanksNs;                  // the same by rank
    std::string unavailable;                                // why there is none
    std::vector<std::string> notes;                         // what had to be inferred
    std::string partNote;                                   // of these, what of the job is replayed; empty: all
    std::optional<diagnose::Ceiling> ceiling;  // less than the sum of the savings where findings share time
};

enum class BoundBy : uint8_t { unknown, mixed, compute, communication, memory, host };

/// Is what the step is made of, as shares that add up to 1 (bound.h).
struct Bound {
    BoundBy by = BoundBy::unknown;
    bool isMeasured = false;
    bool isSplitKnown = true;  ///< of each rank's exposed communication, into waiting and transfer
    bool isOfPath = false;     // of the critical path; else of all ranks' time
    double compute = 0, communication = 0, memory = 0, host = 0, rest = 0;
};

/// Holds what is known of the peak of a rank's memory (memory.h).
struct MemoryRow {
    int rank = 0;
    std::optional<int64_t> heldBytes;     // by CUDA's allocation calls of its process
    std::optional<int64_t> usedBytes;     // of its device by all processes, as NVML read it
    std::optional<int64_t> sampledBytes;  // as an imported trace samples it
    std::optional<int64_t> deviceBytes;   // that its device has
};

/// Is what a rank moves of a step in one direction of the job's parallelism, beside what its strategy has to move
/// (volume.h). Bytes are those on the bus, of a rank and step.
struct VolumeRow {
    std::string strategy;                 // "ZeRO-3", "HSDP", "data parallel", "pipeline", "tensor parallel"…
    std::optional<double> busBytes;       // measured; null: `open` says why
    std::optional<double> expectedBytes;  // of a step of one pass; null: `open` says why
    std::string formula;                  // "3 N (n-1)/n"; empty: nothing is expected
    std::string open;
    std::optional<double> gradientBytes;   // that are reduced in a step, those of all its micro-steps
    std::optional<int> reductions;         // of each gradient a step, where they are seen to repeat
    std::optional<double> toldBytes;       // of parameters and buffers, broadcast before the first step
    std::optional<double> gatherings;      // of all parameters for each reduction of the gradients
    std::optional<double> adamStateBytes;  // of a rank's memory, were the optimizer Adam
};

struct LossRow {
    std::string kind;
    std::string severity;
    int64_t count = 0;
    std::string meaning;
    std::optional<int> rank;
};

struct Report {
    RunSection run;
    std::string death;    // of the job, in a sentence; empty: none is known
    bool failed = false;  // a finding tells what ended it
    facts::Layout layout;
    facts::ClockFacts clock;
    costs::LinkPeaks linkPeaks;
    std::vector<StepRow> steps;
    std::vector<BreakdownRow> breakdown;
    EfficiencySection efficiency;
    std::vector<CollectiveRow> collectives;
    std::vector<VolumeRow> volumes;
    ReplaySection replay;
    Bound bound;
    std::vector<MemoryRow> memory;       // by rank, of those that anything is known of
    std::vector<job::Finding> findings;  // found and inconclusive, by saving
    std::vector<job::Finding> notes;
    diagnose::Accounting accounting;             // of the time that is not compute
    std::vector<diagnose::NotJudged> notJudged;  // by id
    job::Delays delays;                          // what ranks lose to each other
    std::vector<LossRow> losses;
    std::map<int, std::string> hostOfRank;
    std::map<int64_t, std::string> groups;  // what each communicator is and whose, by id
    std::optional<StepOverview> overview;   // where it was asked for; a picture, not part of the JSON
};

/// Returns the pipeline whose schedule is told; nullptr: there is none, or its micro-batches are unknown.
inline const facts::Pipeline* toldPipeline(const facts::Layout& layout) {
    const bool isKnown = !layout.pipelines.empty() && layout.pipelines.front().microBatches > 0;
    return isKnown ? &layout.pipelines.front() : nullptr;
}

/// Says what a communicator is and whose: "tensor parallel 0-3".
inline std::string groupText(const Report& report, int64_t communicator) {
    const auto known = report.groups.find(communicator);
    return known == report.groups.end() ? "communicator " + std::to_string(communicator) : known->second;
}

}  // namespace rankscope::report
