// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/job_failure.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <set>

#include "analyzer/diagnose/price.h"
#include "analyzer/facts/layout.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

using facts::JobEnd;
using facts::RankEnd;

bool isSignalFromOutside(int status) {
    return status == 128 + SIGINT || status == 128 + SIGTERM || status == 128 + SIGHUP || status == 128 + SIGQUIT;
}

/// Somebody ended it, or nobody tells how it ended, as when a scheduler kills all of a job at once.
bool endedFromOutside(const JobEnd& end) {
    if (end.stopSignal || isSignalFromOutside(end.exitStatus.value_or(0))) return true;
    return end.exitStatus.value_or(0) == 0 && std::ranges::none_of(end.ranks, &RankEnd::failedByStatus);
}

bool stoodStill(const JobEnd& end, double stalledNs) {
    return stalledNs >= FailureThresholds::kLeastStallNs &&
           stalledNs >= FailureThresholds::kStallOverGap * static_cast<double>(end.longestGapNs);
}

/// For how long a rank had stood when who watches the job last looked at it, and it got on no more after that. Of
/// virtual GPUs, whose time stands when all wait for something outside, nothing else tells it.
double seenStalledNs(const JobEnd& end) {
    int64_t longestNs = 0;
    for (const RankEnd& rank : end.ranks)
        if (rank.stack) longestNs = std::max(longestNs, rank.stack->stalledNs);
    return static_cast<double>(longestNs);
}

/// It failed by itself: others' ends and calls do not explain it.
bool hasOwnError(const RankEnd& rank) {
    return rank.failed() && (rank.failedAllocation || rank.failedByStatus());
}

bool anyHasOwnError(const JobEnd& end, const std::vector<int>& ranks) {
    return std::ranges::any_of(ranks, [&](int rank) {
        const RankEnd* known = end.find(rank);
        return known && hasOwnError(*known);
    });
}

int64_t lastNsOf(const JobEnd& end, const std::vector<int>& ranks) {
    int64_t lastNs = INT64_MAX;
    for (const int rank : ranks)
        if (const RankEnd* known = end.find(rank)) lastNs = std::min(lastNs, known->lastNs.value_or(INT64_MAX));
    return lastNs;
}

/// Of several roots: with an error of their own, then for whom most wait, then who was silent first.
std::vector<int> choose(const JobEnd& end, const WaitingRanks& waits, std::vector<std::vector<int>> roots,
                        int64_t boundNs, bool& isCertain) {
    if (std::ranges::any_of(roots, [&](const auto& root) { return anyHasOwnError(end, root); }))
        std::erase_if(roots, [&](const auto& root) { return !anyHasOwnError(end, root); });
    size_t most = 0;
    for (const auto& root : roots) most = std::max(most, waits.behind(root).size());
    std::erase_if(roots, [&](const auto& root) { return waits.behind(root).size() < most; });
    std::ranges::stable_sort(roots, {}, [&](const auto& root) { return lastNsOf(end, root); });
    isCertain = roots.size() < 2 || lastNsOf(end, roots[1]) - lastNsOf(end, roots[0]) > boundNs;
    return roots.front();
}

/// The only rank with an error of its own, when no other's end can be told from it: memory that was refused before a
/// status, which those may have that noticed the failure.
std::optional<int> onlyFailed(const JobEnd& end, int64_t boundNs) {
    std::vector<const RankEnd*> failed;
    for (const RankEnd& rank : end.ranks)
        if (hasOwnError(rank) ||
            (rank.endKind == "signal" && !isSignalFromOutside(static_cast<int>(128 + rank.endCode.value_or(0)))))
            failed.push_back(&rank);
    if (std::ranges::any_of(failed, [](const RankEnd* rank) { return rank->failedAllocation.has_value(); }))
        std::erase_if(failed, [](const RankEnd* rank) { return !rank->failedAllocation; });
    if (failed.empty() || (failed.size() > 1 && failed.size() == end.ranks.size())) return std::nullopt;
    std::ranges::stable_sort(failed, {}, [](const RankEnd* rank) { return rank->lastNs.value_or(INT64_MAX); });
    const bool first =
        failed.size() == 1 || failed[1]->lastNs.value_or(INT64_MAX) - failed[0]->lastNs.value_or(0) > boundNs;
    return first ? std::optional(failed.front()->rank) : std::nullopt;
}

/// Of a cycle, from its first rank round to it; else the longest of the shortest ways to the root.
std::vector<Wait> longestChain(const WaitingRanks& waits, const JobFailure& failure) {
    std::vector<Wait> longest;
    for (const int rank : failure.waiting) {
        std::vector<Wait> chain = waits.chain(rank, failure.root);
        if (chain.size() > longest.size()) longest = std::move(chain);
    }
    return longest;
}

/// From the first rank of a cycle along waits inside it until one comes again.
std::vector<Wait> roundOf(const WaitingRanks& waits, const std::vector<int>& root) {
    std::vector<Wait> round;
    std::set<int> seen;
    for (int at = root.front(); seen.insert(at).second;) {
        const auto inside =
            std::ranges::find_if(waits.of(at), [&](const Wait& wait) { return text::contains(root, wait.on); });
        if (inside == waits.of(at).end()) return round;
        round.push_back(*inside);
        at = inside->on;
    }
    while (!round.empty() && round.front().waiter != round.back().on) round.erase(round.begin());
    return round;
}

/// The one rank of several without which nobody of `root` would wait in a circle; two that wait for each other share
/// it.
std::optional<int> inAllCircles(const WaitingRanks& waits, const std::vector<int>& root) {
    if (root.size() < 3) return std::nullopt;
    std::optional<int> only;
    for (const int candidate : root) {
        // Ranks whose waiting has an end, once the candidate is gone, until no more are found.
        std::set<int> free{candidate};
        for (bool more = true; more;) {
            more = false;
            for (const int rank : root) {
                const bool ends = std::ranges::all_of(waits.of(rank), [&](const Wait& wait) {
                    return free.contains(wait.on) || !text::contains(root, wait.on);
                });
                if (ends && free.insert(rank).second) more = true;
            }
        }
        if (free.size() < root.size()) continue;
        if (only) return std::nullopt;
        only = candidate;
    }
    return only;
}

}  // namespace

/// Somebody waits for one of the ranks in a collective, directly.
bool isMissedInCollective(const WaitingRanks& waits, const std::vector<int>& waiting, const std::vector<int>& root) {
    return std::ranges::any_of(waiting, [&](int rank) {
        return std::ranges::any_of(waits.of(rank), [&](const Wait& wait) {
            return !wait.isInferred() && !wait.call.isMessage() && text::contains(root, wait.on);
        });
    });
}

/// All that is known to wait for the root waits for its device to begin.
bool onlyUnbegun(const WaitingRanks& waits, const std::vector<int>& waiting, const std::vector<int>& root) {
    return std::ranges::all_of(waiting, [&](int rank) {
        return std::ranges::all_of(waits.of(rank), [&](const Wait& wait) {
            return wait.why == Wait::Why::unbegun || wait.isInferred() || !text::contains(root, wait.on);
        });
    });
}

/// A message that the waiter takes for unsent. Rings that have dropped their first messages are counted from the first
/// that has not ended, and a send may have ended of which the receive has not: the send may have been made.
bool mayHaveBeenSent(const JobEnd& end, const Wait& wait) {
    if (wait.why != Wait::Why::missing || wait.call.op != store::Op::recv) return false;
    const RankEnd* receiver = end.find(wait.waiter);
    const RankEnd* sender = end.find(wait.on);
    return !receiver || !sender || !receiver->fromStart || !sender->fromStart;
}

/// All that is known to wait for the root waits for messages that it may have sent.
bool onlyMaybeUnsent(const WaitingRanks& waits, const JobEnd& end, const JobFailure& failure) {
    return std::ranges::all_of(failure.waiting, [&](int rank) {
        return std::ranges::all_of(waits.of(rank), [&](const Wait& wait) {
            return mayHaveBeenSent(end, wait) || wait.isInferred() || !text::contains(failure.root, wait.on);
        });
    });
}

/// From when the first of those that wait for the root's device had begun to the last that is known, ns.
double stoodSince(const WaitingRanks& waits, const JobEnd& end, const JobFailure& failure) {
    int64_t firstNs = end.lastProgressNs;
    for (const int rank : failure.waiting)
        for (const Wait& wait : waits.of(rank))
            if (wait.why == Wait::Why::unbegun && text::contains(failure.root, wait.on))
                firstNs = std::min(firstNs, wait.call.begunNs.value_or(firstNs));
    return static_cast<double>(end.lastProgressNs - firstNs);
}

std::vector<JobFailure> failuresInDumps(const JobEnd& end) {
    const WaitingRanks waits(end);
    // Where most dumps are somewhere else, that one is missing tells nothing.
    const bool mostAreThere = 2 * std::ranges::count_if(end.ranks, &RankEnd::recorded) > std::ssize(end.ranks);
    std::vector<JobFailure> failures;
    for (const std::vector<int>& root : waits.roots()) {
        JobFailure failure;
        failure.root = root;
        failure.waiting = waits.behind(root);
        if (root.size() > 1) {
            failure.kind = JobFailure::Kind::cycle;
            failure.chain = roundOf(waits, root);
            failure.mayHaveSent =
                std::ranges::any_of(failure.chain, [&](const Wait& wait) { return mayHaveBeenSent(end, wait); });
            failure.isCertain = !failure.mayHaveSent && std::ranges::none_of(failure.chain, &Wait::isInferred);
            const auto isStuck = [](const Wait& wait) { return wait.why == Wait::Why::stuck; };
            if (const auto stuck = std::ranges::find_if(failure.chain, isStuck); stuck != failure.chain.end()) {
                const Wait first = *stuck;
                failure.trace = JobFailure::Trace::transfer;
                failure.chain = {first};
            }
            failures.push_back(std::move(failure));
            continue;
        }
        const RankEnd* rank = end.find(root.front());
        failure.kind =
            isMissedInCollective(waits, failure.waiting, root) ? JobFailure::Kind::missing : JobFailure::Kind::chain;
        failure.trace = waits.standsIn(root.front())              ? JobFailure::Trace::stands
                        : !rank || !rank->recorded || rank->isCut ? JobFailure::Trace::untold
                                                                  : JobFailure::Trace::called;
        if (failure.trace == JobFailure::Trace::called && onlyUnbegun(waits, failure.waiting, root))
            failure.trace = JobFailure::Trace::unbegun;
        if (failure.trace == JobFailure::Trace::untold && !mostAreThere) continue;
        failure.isCertain = failure.trace == JobFailure::Trace::unbegun
                                ? stoodSince(waits, end, failure) >= FailureThresholds::kLeastStallNs
                                : failure.trace != JobFailure::Trace::untold;
        if (failure.trace == JobFailure::Trace::called && onlyMaybeUnsent(waits, end, failure)) {
            failure.mayHaveSent = true;
            failure.isCertain = false;
        }
        // Ranks of one node, or behind one switch, fail alike and are told as one.
        const auto alike = std::ranges::find_if(failures, [&](const JobFailure& other) {
            return other.kind == failure.kind && other.trace == failure.trace &&
                   other.mayHaveSent == failure.mayHaveSent;
        });
        if (alike == failures.end()) {
            failures.push_back(std::move(failure));
            continue;
        }
        alike->root.push_back(root.front());
        alike->waiting.insert(alike->waiting.end(), failure.waiting.begin(), failure.waiting.end());
    }
    for (JobFailure& failure : failures) {
        std::ranges::sort(failure.waiting);
        const auto [first, last] = std::ranges::unique(failure.waiting);
        failure.waiting.erase(first, last);
        if (failure.kind != JobFailure::Kind::cycle) failure.chain = longestChain(waits, failure);
    }
    return failures;
}

JobFailure failureOfCaptures(const job::Analysis& analysis) {
    JobFailure failure;
    const JobEnd& end = *analysis.facts.end;
    // Who watched the job saw it stand still, and dumped what its ranks held; they have no end yet.
    if (!end.seenToStand &&
        std::ranges::none_of(end.ranks, [](const RankEnd& rank) { return rank.failed() || !rank.recorded; }))
        return failure;
    failure.stalledNs = static_cast<double>(end.endNs - end.lastProgressNs);
    const bool stalled = end.seenToStand || stoodStill(end, failure.stalledNs);
    const double seenNs = seenStalledNs(end);
    if (endedFromOutside(end) && !stalled && seenNs < FailureThresholds::kLeastStallNs) return failure;
    failure.stalledNs = std::max(seenNs, failure.stalledNs);
    const int64_t boundNs = 2 * analysis.facts.clock.boundNs;
    const WaitingRanks waits(end);
    if (const auto roots = waits.roots(); !roots.empty())
        failure.root = choose(end, waits, roots, boundNs, failure.isCertain);
    // Where the job ended at once, ranks may be ahead of healthy ones; an error tells more.
    if (const std::optional<int> failed = onlyFailed(end, boundNs);
        failed && !stalled && !waits.waits(*failed) && !anyHasOwnError(end, failure.root) &&
        end.find(*failed)->lastNs.value_or(INT64_MAX) <= lastNsOf(end, failure.root))
        failure.root = {*failed};
    if (failure.root.empty()) return failure;
    failure.waiting = waits.behind(failure.root);
    if (failure.root.size() > 1) {
        failure.kind = JobFailure::Kind::cycle;
        failure.chain = roundOf(waits, failure.root);
        if (const std::optional<int> odd = inAllCircles(waits, failure.root)) {
            failure.waiting.insert(failure.waiting.end(), failure.root.begin(), failure.root.end());
            std::erase(failure.waiting, *odd);
            std::ranges::sort(failure.waiting);
            failure.root = {*odd};
        }
        return failure;
    }
    failure.chain = longestChain(waits, failure);
    const bool direct = std::ranges::all_of(failure.waiting, [&](int rank) {
        const std::vector<Wait> chain = waits.chain(rank, failure.root);
        return chain.size() == 1 && !chain.front().call.isMessage();
    });
    failure.kind = direct ? JobFailure::Kind::missing : JobFailure::Kind::chain;
    return failure;
}

std::vector<JobFailure> failuresOf(const job::Analysis& analysis) {
    if (!analysis.facts.end) return {};
    const JobEnd& end = *analysis.facts.end;
    if (const facts::Contradiction* contradiction = contradictionOf(analysis);
        contradiction && hasHung(end, *contradiction))
        return {};
    if (end.isRecorder) return failuresInDumps(end);
    JobFailure failure = failureOfCaptures(analysis);
    return failure.kind == JobFailure::Kind::none ? std::vector<JobFailure>{} : std::vector{std::move(failure)};
}

const facts::Contradiction* contradictionOf(const job::Analysis& analysis) {
    if (!analysis.facts.end) return nullptr;
    // Numbers of calls that were not all recorded do not fit each other.
    if (facts::lostCalls(analysis.facts)) return nullptr;
    const facts::Contradiction* first = nullptr;
    const auto startNs = [](const facts::Contradiction& one) { return one.calls.front().second.startNs; };
    for (const facts::Contradiction& one : analysis.facts.end->contradictions)
        if (!first || startNs(one) < startNs(*first)) first = &one;
    return first;
}

bool hasHung(const facts::JobEnd& end, const facts::Contradiction& contradiction) {
    return contradiction.isMessage() ||  // neither end of it ended
           end.communicators.at(contradiction.communicator).done <= contradiction.seq;
}

void setLastWindow(const job::Analysis& analysis, job::Finding& finding) {
    finding.windowEndNs = analysis.facts.end->endNs;
    finding.windowStartNs = std::min(analysis.facts.end->lastProgressNs, finding.windowEndNs - 1);
    if (!analysis.facts.end->isRecorder) return;
    // When it stood still is not told: from the first call that did not end.
    for (const RankEnd& rank : analysis.facts.end->ranks)
        if (!rank.unfinished.empty())
            finding.windowStartNs = std::min(finding.windowStartNs, rank.unfinished.front().startNs);
}

void tellEnd(const job::Analysis& analysis, const JobFailure& failure, job::Finding& finding) {
    if (failure.stalledNs >= FailureThresholds::kLeastStallNs)
        finding.evidence.facts.push_back(
            fmt::format("nobody got on for the last {}", text::durationText(failure.stalledNs)));
    if (!analysis.facts.end->isRecorder) finding.evidence.numbers = {{"stalled_ns", failure.stalledNs}};
    if (!failure.isCertain && failure.trace == JobFailure::Trace::transfer)
        finding.whyInconclusive =
            "which of them holds the others up, dumps without the starts of calls do not tell, and of a job that "
            "gets on this may be one on its way: TORCH_NCCL_ENABLE_TIMING=1 has the next dumps tell them";
    else if (!failure.isCertain && failure.mayHaveSent)
        finding.whyInconclusive =
            "the rings have dropped the first messages, so that which send belongs to which receive is counted from "
            "their ends, and a send may have ended of which the receive has not: with a larger "
            "TORCH_NCCL_TRACE_BUFFER_SIZE the next dumps hold all";
    else if (!failure.isCertain && failure.kind == JobFailure::Kind::cycle)
        finding.whyInconclusive =
            "all have called all of it, and the two groups have streams of their own: whether the device runs them "
            "side by side, the dumps do not tell";
    else if (!failure.isCertain && failure.trace == JobFailure::Trace::unbegun)
        finding.whyInconclusive =
            "dumps do not tell when they were written: in a job that gets on, whoever comes last looks like this for a "
            "moment";
    else if (!failure.isCertain && analysis.facts.end->isRecorder)
        finding.whyInconclusive =
            "what the dumps hold of them is not all: they may have come, too, and the transfer hangs. Their dumps, or "
            "their whole ones, would tell";
    else if (!failure.isCertain)
        finding.whyInconclusive = "others stopped at the same time, as far as the clocks tell, and may be the cause";
    for (const int rank : failure.root)
        if (const RankEnd* known = analysis.facts.end->find(rank); known && known->lastNccl)
            finding.evidence.rows.push_back({"nccl_call", known->lastNccl->callId, rank, "the last that it called"});
    for (const int rank : failure.waiting)
        if (const RankEnd* known = analysis.facts.end->find(rank);
            known && !known->unfinished.empty() && finding.evidence.rows.size() < FailureThresholds::kMostRows)
            finding.evidence.rows.push_back({"nccl_call", known->unfinished.front().callId, rank, "never finished"});
    setLastWindow(analysis, finding);
    setWholeJob(analysis, 1, finding);
}

}  // namespace rankscope::diagnose
