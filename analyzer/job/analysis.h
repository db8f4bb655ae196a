// SPDX-License-Identifier: Apache-2.0
// What a detector reads: facts of the run and the summaries of its ranks.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "analyzer/costs/collective_cost.h"
#include "analyzer/costs/link_peaks.h"
#include "analyzer/costs/most_share.h"
#include "analyzer/facts/layout.h"
#include "analyzer/facts/rank_summary.h"
#include "analyzer/facts/shared_list.h"
#include "analyzer/facts/trace_facts.h"
#include "analyzer/job/delays.h"
#include "analyzer/job/kernel_ratios.h"
#include "analyzer/job/link_probes.h"
#include "analyzer/job/pipeline_times.h"
#include "analyzer/job/recorded_work.h"
#include "analyzer/replay/replay.h"

namespace rankscope::team {
class Team;
}

namespace rankscope::job {

struct UndisturbedMessage;  // collective_speed.h

/// What edits read of a job but its replay. Copies are made where a change has another layout, and share what is large.
struct RecordedJob {
    facts::TraceFacts facts;
    facts::SharedList<facts::RankSummary> ranks;  // recorded ranks, by rank
    costs::LinkPeaks peaks;
    costs::CollectiveCost cost;  // by `peaks`, the collectives and tables
    facts::Layout layout;
    std::vector<int> steps;  // analysed step numbers that every recorded rank has
    double stepNs = 0;       // median over these steps of the longest rank's step
    RecordedWorks works;     // where replicas are left out of the replay

    /// Summary of a recorded rank, nullptr when it left nothing.
    const facts::RankSummary* findRank(int rank) const;
    /// A rank's window of a step, nullptr when it has none.
    const facts::StepWindow* window(int rank, int step) const;
    /// A rank's attribution of a step.
    const facts::Attribution* attribution(const facts::RankSummary& rank, int step) const;
    /// Communication kernels a rank starts in a step.
    std::span<const facts::CommTask> tasks(const facts::RankSummary& rank, int step) const;
    int64_t clockBoundNs(const std::vector<int>& among) const {
        return facts.sameHost(among) ? 0 : facts.clock.boundNs;
    }
};

struct Analysis : RecordedJob {
    replay::ReplayModel replay;             // of `steps`
    Delays delays;                          // what ranks lose to each other
    PipelineTimes pipelineTimes;            // what stages did in a step
    std::vector<KernelRatio> kernelRatios;  // one per rank of `ranks`, against all others
    std::vector<LinkProbe> linkProbes;
    std::map<int, facts::MemoryPeaks> memoryOfOthers;        // of ranks without device activity
    std::map<int64_t, std::vector<uint32_t>> collectivesOf;  // by communicator: where in facts.collectives
    std::set<int64_t>
        sharedCollectives;  // a member was disturbed (disturbedTasks()): their time tells nothing of a link
};

/// Sees the events of each rank while they are in memory; called by several threads at once.
using RankObserver = std::function<void(const facts::RankEvents&)>;

struct LoadOptions {
    unsigned workers = 0;      // threads of this process; 0: its share of the cores
    costs::LinkSources links;  // what is said of the links, beside what the trace holds
    /// Makes the observer, once the facts of the trace are known; empty: nobody else wants to see the events. The facts
    /// live until the observer has seen the last rank.
    std::function<RankObserver(const facts::TraceFacts&)> observer;
    std::vector<costs::NcclTestsTable> tables = {};  // what messages were measured to take on the same hardware
    /// Processes that take ranks in phase 1 where they see the same trace.db, and have been told to help (phase_one.h);
    /// nullptr: this one takes all.
    team::Team* team = nullptr;
    /// Filled with those that can then play the job (packed_job.h), too; the first process is the first of them.
    std::vector<int>* holders = nullptr;
    /// What the observers of the others have seen, as their PhaseOneHelp::give says it.
    std::function<void(std::string_view)> takeObserved = {};
    std::function<void(const std::string&)> tell = {};  // what the user should know of the team
    replay::ReplayLimits replayed = {};
};

/// What detectors and edits read of a trace: both phases, no findings. `database` is a .db file. Throws store::Error,
/// and team::MemberFailed where a process of the team does.
Analysis readAnalysis(const std::filesystem::path& database, const LoadOptions& options = {});

struct ReachedPeakThresholds {
    // Start-up per hop of Simple that nothing undercuts: NVLink in NCCL's table (src/graph/tuning.cc of 2.28, hwLat).
    // Taken off a time, what is left is no less than its bytes'.
    static constexpr double kLeastAlphaNs = 3'400;
    // Between hosts the arrivals are known to the clock's bound: it must not make more of a time than this.
    static constexpr double kClockShare = 0.1;
    // Of a collective's time that a slow edge has its data on the network: with less it is not what the others wait
    // for.
    static constexpr double kBusyShare = 0.5;
    // A last chunk that takes this share of its time longer than the others' tells little of how much: such an edge is
    // "at least five times slower".
    static constexpr double kMostLead = 0.8;
    static constexpr double kRefuted = costs::kRefuted;
};

/// Gives the classes of links whose peak nobody told the best that this job reached: lower bounds, start-up unknown
/// (0). Evidence, the best of
/// - undisturbed collectives and messages, medians of a size, with what algorithm and protocol leave of the link taken
///   out;
/// - of a collective that one edge holds up, how much faster the other edges are: between nodes by the proxies' time on
///   the network (networkEdges), inside one by how much earlier their members leave (slowestEdge).
void addReachedPeaks(Analysis& analysis, const std::vector<UndisturbedMessage>& messages);

}  // namespace rankscope::job
