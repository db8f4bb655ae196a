// SPDX-License-Identifier: Apache-2.0
// Holds what a comparison needs of one run: a few kilobytes that stand for its trace, and the contents of a baseline
// file. Times are ns per step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/job/analysis.h"
#include "analyzer/report/report_model.h"
#include "analyzer/report/step_overview.h"

namespace rankscope::compare {

/// The kernels of one name on one rank.
struct KernelWork {
    double ns = 0;
    double blocks = 0;  // thread blocks: how much work they are, whatever they take; 0 unknown
};

/// One rank, known by its place in the layout instead of its number.
struct RoleSummary : BreakdownSide {
    std::string role;  // "pp 1, dp 0"; "rank 3" where the layout does not tell ranks apart
    int rank = 0;
    int stage = -1;  // of its pipeline
    std::string host;
    double receiveWaitNs = 0;                // part of exposedWaitNs: in sends and receives
    double slowedNs = 0;                     // part of computeNs: lost to communication beside it
    double kernels = 0;                      // compute kernels
    std::map<std::string, KernelWork> work;  // those of the job's kMostKernelsOfARank longest kernels, by name
    std::map<std::string, double> idleByCauseNs;
    std::map<std::string, double> stallByCauseNs;  // host stalls: the device had nothing to do because of the host
    std::map<std::string, double> pathNs;          // critical path on this rank, by category
};

/// A number of a row: its name in a summary file, in the order of the file.
template <typename Row>
struct NumberField {
    const char* name;
    double Row::*member;
    bool maySink = false;  // below 0: an estimate around none
};

inline constexpr NumberField<RoleSummary> kRoleNumbers[] = {{"step_ns", &RoleSummary::stepNs},
                                                            {"compute_ns", &RoleSummary::computeNs},
                                                            {"exposed_wait_ns", &RoleSummary::exposedWaitNs},
                                                            {"exposed_transfer_ns", &RoleSummary::exposedTransferNs},
                                                            {"overlapped_comm_ns", &RoleSummary::overlappedCommNs},
                                                            {"memory_ns", &RoleSummary::memoryNs},
                                                            {"idle_ns", &RoleSummary::idleNs},
                                                            {"receive_wait_ns", &RoleSummary::receiveWaitNs},
                                                            {"slowed_ns", &RoleSummary::slowedNs, true},
                                                            {"kernels", &RoleSummary::kernels}};

inline constexpr NumberField<TrafficSummary> kTrafficNumbers[] = {
    {"count", &TrafficSummary::count},
    {"bytes", &TrafficSummary::bytes},
    {"transfer_ns", &TrafficSummary::transferNs, true},
    {"wait_ns", &TrafficSummary::waitNs},
    {"exposed_transfer_ns", &TrafficSummary::exposedTransferNs},
    {"exposed_wait_ns", &TrafficSummary::exposedWaitNs},
    {"busbw", &TrafficSummary::busbw}};

struct FindingSummary {
    std::string id, title, verdict;         // verdict: found | inconclusive | note
    std::vector<std::string> alternatives;  // diagnoses that it may as well be
    std::vector<int> ranks;
    std::vector<std::string> roles;  // of `ranks`; empty: all of the job's
    std::string cause;
    std::vector<std::string> fix;
    /// What its cause was seen to take; empty: nothing was seen, or an older version's file mixes cost and saving.
    std::optional<double> costNs;
    std::optional<double> savingNs;    // what its repair saves, replayed; empty: it could not be played
    double severity = 0;               // share of the step, of the saving or else of the cost
    std::optional<double> leastShare;  // of the step, from which it is found, where that is more than for others
};

/// Whether they may be of one diagnosis: what a recording of calls leaves open (RS301 or RS304) one with kernels tells.
bool mayBeOne(const FindingSummary& one, const FindingSummary& other);

/// Its file, whether that is of a baseline, and its typical step are not part of the summary.
struct RunSummary : ComparedRun {
    // A picture of one step, of runs read from their trace; not part of the summary.
    std::optional<report::StepOverview> overview;
    std::string toolVersion;
    int64_t startUnixNs = 0;                         // when the run began; 0 unknown
    int64_t savedOrder = 0;                          // of a baseline: entries count up as they are saved; 0 unknown
    bool beginsLevel = false;                        // of a baseline: the change of the step up to here was accepted
    std::map<std::string, std::string> environment;  // world_size, gpu, nccl, cuda, source, virtual, step_source,
                                                     // missing_sources, loss, layout, ranks_per_host
    std::vector<std::string> hosts;
    std::optional<double> slowStepNs;  // slowStepOf() all steps, where stepsNs are means over several of them; empty:
                                       // not known, or stepsNs has them all
    std::vector<RoleSummary> roles;    // by rank
    std::vector<TrafficSummary> traffic;
    std::map<std::string, double> pathTransferNs;  // critical path in transfers, by "op of use"
    bool hasPath = false;                          // the run could be replayed
    bool deviceLoss = false;                   // device records are missing: times by category are not to be trusted
    std::vector<KernelSummary> kernels;        // longest first; the last may stand for all others
    std::map<std::string, double> efficiency;  // parallel, load_balance, serialisation, transfer
    std::vector<FindingSummary> findings;
    std::vector<report::LossRow> losses;

    static constexpr size_t kMostSamples = 512;
    static constexpr size_t kMostKernels = 40;
    static constexpr size_t kMostKernelsOfARank = 16;  // of a step they are nearly all compute; times thousands of
                                                       // ranks they make a baseline file large. The rest: `kernels`
    static constexpr size_t kMostFindings = 200;
};

/// The summary of an analysed run. O(events of the summaries of its ranks).
RunSummary summarizeRun(const job::Analysis& analysis, const report::Report& report);

/// Does the same for a trace, from its database. Nothing is written into it. Throws store::Error, and what `check`
/// throws to end it early, which is called for each rank, by several threads at once, and between the parts of the
/// analysis.
RunSummary summarizeTrace(
    const std::filesystem::path& database, unsigned workers = 0, const std::function<void()>& check = [] {});

/// Keeps the run's steps (ns, in order), as means over neighbours where there are more than kMostSamples.
void setSteps(std::vector<double> timesNs, RunSummary& summary);

/// The 95th percentile of a run's steps, ns; empty: too few of them to have a tail of 5 %.
std::optional<double> slowStepOf(std::vector<double> stepsNs);

/// "op of use": the key of RunSummary::pathTransferNs.
std::string trafficName(const std::string& use, const std::string& op);

/// Communication of the analysed steps by use, operation and size class; most time first.
std::vector<TrafficSummary> summarizeTraffic(const job::Analysis& analysis);

/// Names each rank "pp 1, dp 0, tp 3": by the places in its pipeline and in its largest group of each use, as far as
/// those have more than one member. "rank 3" for all ranks when that does not tell them apart.
std::map<int, std::string> rankRoles(const job::Analysis& analysis);

}  // namespace rankscope::compare
