// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/costs/link_peaks.h"
#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/graph_changes.h"
#include "analyzer/edits/graph_view.h"

namespace rankscope::edits {
namespace {

enum class Stall : uint8_t { synchronisation, input, allocator, pageable, lateLaunch, pauses };

bool isAllocatorCall(std::string_view name) {
    const auto has = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
    return has("Malloc") || has("MemAlloc") || has("HostAlloc") || has("MemCreate") || has("cudaFree") ||
           has("MemFree") || has("MemRelease") || has("FreeHost");
}

/// What is to go from one rank's host.
struct Removal {
    std::unordered_set<uint32_t> names;             // of blocking calls, as name ids
    std::unordered_set<uint32_t> submissions;       // rows of api_call: the host comes there without delay
    std::unordered_map<uint32_t, double> pageable;  // row of memcpy: its time from pinned memory, ns
    std::unordered_map<uint32_t, int64_t>
        pausedCalls;  // row of api_call: the time it takes when the host does not stand still in it, ns
    bool allocator = false;
};

class HostRepair {
  public:
    /// `copiesAside`: copies from pinned memory run beside compute, else in the stream where they are.
    HostRepair(TaskGraph& graph, const Analysis& analysis, bool copiesAside)
        : m_graph(graph),
          m_analysis(analysis),
          m_copiesAside(copiesAside),
          m_usualLeads(usualLeads(graph)),
          m_atEnd(afterLastSubmission(graph)),
          m_gone(graph.size()) {}

    void take(int rank, Removal removal) { m_removals[rank] = std::move(removal); }

    void run() {
        for (TaskId task = 0; task < m_graph.size(); ++task) {
            const auto removal = m_removals.find(m_graph.rankOf(task));
            if (removal != m_removals.end()) change(task, removal->second);
        }
        removeEdges(m_graph,
                    [&](TaskId to, const Edge& edge) { return m_gone[to] && edge.kind == WaitKind::blocking; });
        if (m_aside.empty()) return;
        m_changed += static_cast<int64_t>(m_aside.size());
        putAside(m_graph, m_aside);
    }

    int64_t changed() const { return m_changed; }

  private:
    void change(TaskId task, const Removal& removal) {
        const TaskInfo& info = m_graph.info[task];
        if (info.kind == TaskKind::copy) {
            const auto copy = removal.pageable.find(info.row);
            if (copy == removal.pageable.end()) return;
            const int64_t ns = std::min(m_graph.durationNs[task], static_cast<int64_t>(std::llround(copy->second)));
            if (m_copiesAside) {
                m_aside[task] = ns;
            } else {
                m_graph.durationNs[task] = ns;
                ++m_changed;
            }
            return;
        }
        const bool blocks = info.kind == TaskKind::blockingCall;
        if (info.kind != TaskKind::host && !blocks) return;
        if (info.kind == TaskKind::host && removal.submissions.count(info.row) != 0) hurry(task);
        if (const auto call = removal.pausedCalls.find(info.row); call != removal.pausedCalls.end()) {
            m_graph.durationNs[task] = std::min(m_graph.durationNs[task], call->second);
            ++m_changed;
        }
        if (blocks && (waitsForNothingElse(task, removal) || (!m_atEnd[task] && removal.names.contains(info.detail))))
            drop(task);
        else if (removal.allocator && isAllocatorCall(callName(m_graph, m_analysis, task)))
            drop(task);
        const TaskId before = beforeLead(task);
        if (before != kNoTask && m_gone[before] && info.kind == TaskKind::host && !isMark(task)) hurry(task);
    }

    /// A blocking call that only pageable copies keep waiting: theirs, or a synchronisation behind them.
    bool waitsForNothingElse(TaskId task, const Removal& removal) const {
        bool waits = false;
        for (const Edge& edge : m_graph.edgesOf(task, WaitKind::blocking)) {
            const TaskInfo& from = m_graph.info[edge.from];
            if (from.kind != TaskKind::copy || removal.pageable.count(from.row) == 0) return false;
            waits = true;
        }
        return waits;
    }

    bool isMark(TaskId task) const { return m_graph.info[task].row == 0 && m_graph.durationNs[task] == 0; }

    TaskId beforeLead(TaskId task) const {
        const TaskId before = m_graph.before[task];
        return before != kNoTask && isLongLead(m_graph, before) ? m_graph.before[before] : before;
    }

    /// The host comes to this call after the usual work in front of it; where a step begins between, that takes no time
    /// of its own.
    void hurry(TaskId task) {
        const uint32_t usual = m_usualLeads[m_graph.info[task].lane];
        ++m_changed;
        // Calls that wait for nothing, such as the reading of timers, may stand between the delay and the submission.
        TaskId longest = task;
        for (TaskId before = beforeLead(task); before != kNoTask; before = beforeLead(before)) {
            if (isMark(before))
                shortenLead(m_graph, before, usual);
            else if (m_graph.info[before].kind != TaskKind::blockingCall)
                break;
            else if (leadOf(before) > leadOf(longest))
                longest = before;
        }
        shortenLead(m_graph, longest, usual);
        shortenLead(m_graph, task, usual);
    }

    int64_t leadOf(TaskId task) const {
        const TaskId before = m_graph.before[task];
        return m_graph.leadNs[task] +
               (before != kNoTask && isLongLead(m_graph, before) ? m_graph.durationNs[before] : 0);
    }

    void drop(TaskId task) {
        m_gone[task] = true;
        m_graph.durationNs[task] = 0;
        ++m_changed;
    }

    TaskGraph& m_graph;
    const Analysis& m_analysis;
    const bool m_copiesAside;
    std::vector<uint32_t> m_usualLeads;
    std::vector<bool> m_atEnd;
    std::vector<bool> m_gone;
    std::unordered_map<int, Removal> m_removals;  // by rank
    CopiesAside m_aside;
    int64_t m_changed = 0;
};

double pinnedBytesPerNs(const Analysis& analysis) {
    double bytes = 0, ns = 0;
    for (const facts::RankSummary& rank : analysis.ranks) {
        for (const facts::HostUse& use : rank.hostUse) {
            bytes += static_cast<double>(use.pinned.bytes);
            ns += static_cast<double>(use.pinned.deviceNs);
        }
    }
    return ns > 0 ? bytes / ns : costs::kUnseenPinnedGbps;
}

Removal removalOf(const Analysis& analysis, const facts::RankSummary& rank, const std::vector<Stall>& causes) {
    Removal removal;
    const auto wanted = [&](Stall stall) { return std::ranges::find(causes, stall) != causes.end(); };
    for (const facts::HostStall& stall : rank.hostStalls) {
        if (wanted(Stall::pauses) && stall.pausedNs * 2 > stall.stallNs && stall.submissionId != 0)
            removal.submissions.insert(static_cast<uint32_t>(stall.submissionId));
        if (wanted(Stall::synchronisation) && stall.cause == facts::IdleCause::blockingCall && !stall.pageableCopy &&
            stall.callNameId != 0)
            removal.names.insert(static_cast<uint32_t>(stall.callNameId));
        const bool late = (wanted(Stall::input) && stall.cause == facts::IdleCause::input) ||
                          (wanted(Stall::lateLaunch) && stall.cause == facts::IdleCause::lateLaunch) ||
                          (wanted(Stall::allocator) && stall.cause == facts::IdleCause::allocator);
        if (late && stall.submissionId != 0) removal.submissions.insert(static_cast<uint32_t>(stall.submissionId));
    }
    if (wanted(Stall::pauses))
        for (const facts::HostPause& pause : rank.hostPauses)
            if (pause.call) removal.pausedCalls[static_cast<uint32_t>(pause.id)] = pause.usualNs;
    removal.allocator = wanted(Stall::allocator);
    if (wanted(Stall::pageable)) {
        const double rate = pinnedBytesPerNs(analysis);
        for (const facts::HostUse& use : rank.hostUse)
            for (const facts::PageableCopy& copy : use.pageableCopies)
                removal.pageable[static_cast<uint32_t>(copy.id)] = static_cast<double>(copy.bytes) / rate;
    }
    return removal;
}

bool waitsForInput(const facts::RankSummary& rank) {
    return std::ranges::any_of(rank.hostStalls, [](const facts::HostStall& stall) {
        return stall.cause == facts::IdleCause::input && stall.submissionId != 0;
    });
}

/// What loading in other processes may leave: they take cores, caches and memory bandwidth from the process that
/// launches, and what they hand over lies in memory that it has not touched yet. A ResNet-50 with four workers
/// spent 1.2 times as long on all of its other host work, and 0.57 us on each new page of 4 KiB, as without workers.
constexpr double kCrowdedHost = 1.2;
constexpr double kNewPageNs = 570, kPageBytes = 4096;

void crowd(TaskGraph& graph, const std::vector<int>& ranks) {
    for (TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind != TaskKind::host || !std::ranges::binary_search(ranks, graph.rankOf(task))) continue;
        graph.leadNs[task] = static_cast<uint32_t>(std::min<double>(UINT32_MAX, kCrowdedHost * graph.leadNs[task]));
        graph.durationNs[task] = scaledNs(graph.durationNs[task], kCrowdedHost);
    }
}

/// The pages of each step's batch, where it is copied from pageable memory: a thread that pins it touches them
/// elsewhere.
void handOver(TaskGraph& graph, const Analysis& analysis, const std::vector<int>& ranks) {
    for (int rank : ranks) {
        const facts::RankSummary& summary = *analysis.findRank(rank);
        std::unordered_map<uint32_t, int64_t> newPagesNs;  // by the submission in front of which the loader was
        for (const facts::HostStall& stall : summary.hostStalls) {
            if (stall.cause != facts::IdleCause::input || stall.submissionId == 0) continue;
            for (const facts::HostUse& use : summary.hostUse)
                if (use.step == stall.step)
                    newPagesNs[static_cast<uint32_t>(stall.submissionId)] =
                        std::llround(kNewPageNs / kPageBytes * static_cast<double>(use.pageable.bytes));
        }
        for (TaskId task = 0; task < graph.size(); ++task) {
            if (graph.info[task].kind != TaskKind::host || graph.rankOf(task) != rank) continue;
            const auto ns = newPagesNs.find(graph.info[task].row);
            if (ns != newPagesNs.end()) graph.durationNs[task] += ns->second;
        }
    }
}

/// The host no longer keeps the device waiting by that cause: what the stalls of the analysis name
/// (facts/idle_causes.h) is taken out, and with it the host's work between such a call and the next submission.
void endStalls(const std::vector<Stall>& causes, const std::vector<int>& wanted, TaskGraph& graph,
               const Analysis& analysis, EditEffect& effect) {
    const std::vector<int> ranks = recordedRanks(analysis, wanted);
    HostRepair repair(graph, analysis, effect.outlook != Outlook::dear);
    for (int rank : ranks) repair.take(rank, removalOf(analysis, *analysis.findRank(rank), causes));
    repair.run();
    const bool loads = std::ranges::any_of(ranks, [&](int rank) { return waitsForInput(*analysis.findRank(rank)); });
    if (loads && std::ranges::find(causes, Stall::input) != causes.end()) {
        effect.hostMaySlow = true;
        if (effect.outlook == Outlook::dear) {
            crowd(graph, ranks);
            handOver(graph, analysis, ranks);
        } else {
            effect.assume(
                "batches come from other processes; the lower end of the interval is with workers that slow this one "
                "by a fifth and hand over memory it has to map");
        }
    }
    if (repair.changed() == 0)
        throw EditError("no such stall of the host is in this run",
                        "rankscope analyze tells what the device waits for");
    if (std::ranges::find(causes, Stall::synchronisation) != causes.end())
        effect.assume("the host's work behind a removed call goes with it; the last blocking call of a step stays");
    if (std::ranges::find(causes, Stall::pageable) != causes.end()) {
        effect.hostMaySlow = true;
        if (effect.outlook != Outlook::dear)
            effect.assume(
                "copies come from pinned memory on a stream of their own, beside compute, a step ahead; the lower end "
                "of the interval is with copies that stay in their stream");
    }
}

}  // namespace

std::unique_ptr<Edit> parseNoStalls(EditArguments& arguments) {
    static constexpr const char* kWords[] = {"sync", "input", "allocator", "pageable", "launch", "pauses"};  // of Stall
    const std::string cause =
        arguments.word("cause", {"sync", "input", "allocator", "pageable", "launch", "pauses", "all"}, "all");
    std::vector<Stall> causes;
    for (size_t i = 0; i < std::size(kWords); ++i)
        if (cause == "all" || cause == kWords[i]) causes.push_back(static_cast<Stall>(i));
    return editBy(endStalls, std::move(causes), arguments.ranks());
}

}  // namespace rankscope::edits
