// SPDX-License-Identifier: Apache-2.0
// The words for failures that dumps of a flight recorder show. They tell of calls and how far these got, of nothing
// else: how a process ended and what its host did stays open, and the fixes say where to look for it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/diagnose/job_failure.h"
#include "analyzer/facts/layout.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

using facts::MemberCounts;
using facts::RankEnd;
using Trace = JobFailure::Trace;

/// Of a rank's waits and calls, as far as a report shows them.
constexpr size_t kMostShown = 8;

/// What is missed of the root, and who waits in it.
struct Missed {
    facts::EndedCall call;
    std::vector<int> waiting;
};

/// The call of the root's in which most wait for it directly, collectives before messages.
std::optional<Missed> missedMost(const WaitingRanks& waits, const JobFailure& failure) {
    std::map<std::tuple<bool, int64_t, int64_t>, Missed> missed;
    for (const int rank : failure.waiting)
        for (const Wait& wait : waits.of(rank)) {
            if (wait.isInferred() || !text::contains(failure.root, wait.on)) continue;
            const bool message = wait.call.isMessage();  // each is of two ranks
            Missed& one = missed[{message, wait.call.communicator, message ? rank : wait.call.seq}];
            one.call = wait.call;
            if (!text::contains(one.waiting, rank)) one.waiting.push_back(rank);
        }
    const auto most = std::ranges::max_element(missed, [](const auto& a, const auto& b) {
        return std::pair(!std::get<0>(a.first), a.second.waiting.size()) <
               std::pair(!std::get<0>(b.first), b.second.waiting.size());
    });
    return most == missed.end() ? std::nullopt : std::optional(most->second);
}

std::string inWhich(const job::Analysis& analysis, const Missed& missed) {
    return fmt::format("{}, in which {} {}", callText(analysis, missed.call), text::ranksText(missed.waiting),
                       missed.waiting.size() == 1 ? "waits" : "wait");
}

/// "3 collectives of TENSOR 8-11 behind rank 8": where the rank is furthest behind.
std::string furthestBehind(const job::Analysis& analysis, int rank, std::map<int, int64_t> MemberCounts::*of,
                           const char* verb) {
    int64_t most = 0;
    std::string text;
    for (const auto& [id, counts] : analysis.facts.end->communicators) {
        const auto& byRank = counts.*of;
        const auto own = byRank.find(rank);
        if (own == byRank.end()) continue;
        for (const auto& [other, count] : byRank) {
            if (count - own->second <= most) continue;
            most = count - own->second;
            text = fmt::format("of {} rank {} {} {}, and rank {} {}: {} more",
                               facts::communicatorName(analysis.facts, analysis.layout, id), rank, verb,
                               own->second > 1 ? fmt::format("collectives up to {}", own->second - 1) : "nothing",
                               other, fmt::format("up to {}", count - 1), most);
        }
    }
    return text;
}

}  // namespace

std::string recordedCause(const job::Analysis& analysis, const JobFailure& failure) {
    const WaitingRanks waits(*analysis.facts.end);
    const std::string who = text::ranksText(failure.root);
    const bool one = failure.root.size() == 1;
    const std::optional<Missed> missed = missedMost(waits, failure);
    std::string text;
    switch (failure.trace) {
        case Trace::stands: {
            const facts::EndedCall& call = *waits.standsIn(failure.root.front());
            text = one ? fmt::format(
                             "the device of {} stands still: it came to {}, which its peers ended, and never "
                             "ended it itself",
                             who, callText(analysis, call))
                       : fmt::format(
                             "the devices of {} stand still: they came to collectives that their peers ended "
                             "({}), and never ended them themselves",
                             who, callText(analysis, call));
            break;
        }
        case Trace::untold: {
            const RankEnd* rank = analysis.facts.end->find(failure.root.front());
            text = rank && rank->recorded
                       ? fmt::format("the dump{} of {} lack{} the last calls", one ? "" : "s", who, one ? "s" : "")
                       : fmt::format("{} left no dump", who);
            text += one ? ", and is the only one that may not have come to the call that all others wait in"
                        : ", and only they may not have come to the calls that all others wait in";
            break;
        }
        case Trace::unbegun:
            text = fmt::format("the device{} of {} {} not begun what {} called", one ? "" : "s", who,
                               one ? "has" : "have", one ? "it" : "they");
            break;
        case Trace::transfer:
            text = fmt::format(
                "{} all called {}, and none of them ended it: the device of one, or a link between them, "
                "stands still",
                who, callText(analysis, failure.chain.front().call));
            if (failure.waiting.empty()) return text;
            return text + fmt::format("; {} {} behind it", text::ranksText(failure.waiting),
                                      failure.waiting.size() == 1 ? "waits" : "wait");
        case Trace::called:
            if (missed && missed->call.isMessage())
                return fmt::format("{} did not {} rank {}, which waits in {}", who,
                                   missed->call.op == store::Op::send ? "receive from" : "send to",
                                   missed->waiting.front(), callText(analysis, missed->call));
            if (missed) return fmt::format("{} did not call {}", who, inWhich(analysis, *missed));
            return fmt::format("{} called nothing more", who);
    }
    if (missed)
        text += fmt::format("; {} {} for {} in {}", text::ranksText(missed->waiting),
                            missed->waiting.size() == 1 ? "waits" : "wait", one ? "it" : "them",
                            callText(analysis, missed->call));
    return text;
}

std::vector<std::string> recordedFacts(const job::Analysis& analysis, const JobFailure& failure) {
    std::vector<std::string> facts;
    for (const int number : text::first(failure.root, kMostShown)) {
        const RankEnd* rank = analysis.facts.end->find(number);
        if (!rank || !rank->recorded) continue;
        if (failure.trace == Trace::stands)
            if (std::string text = furthestBehind(analysis, number, &MemberCounts::finished, "ended"); !text.empty())
                facts.push_back(std::move(text));
        if (std::string text = furthestBehind(analysis, number, &MemberCounts::called, "called"); !text.empty())
            facts.push_back(std::move(text));
        for (std::string& act : lastActs(analysis, *rank)) facts.push_back(std::move(act));
    }
    // The others wait behind those that wait for the root; the longest way shows how.
    if (failure.chain.size() > 1)
        for (const Wait& wait : text::first(failure.chain, kMostShown)) facts.push_back(waitText(analysis, wait));
    return facts;
}

std::vector<std::string> recordedFixes(const job::Analysis&, const JobFailure& failure) {
    const std::string who = text::ranksText(failure.root);
    const std::string their = failure.root.size() == 1 ? "its" : "their";
    switch (failure.trace) {
        case Trace::stands:
            return {
                fmt::format("look at the GPU of {}: Xid messages (dmesg -T | grep -i xid), nvidia-smi -q -d "
                            "ECC,PERFORMANCE, a CUDA error in {} log",
                            who, their),
                "where the GPU is well, a kernel of the program's own holds up its stream: cuda-gdb, or py-spy dump "
                "--native, shows it"};
        case Trace::unbegun:
            return {
                fmt::format("look at what the GPU of {} runs in front of it: a kernel that does not end, or a stream "
                            "that waits for an event or the host (cuda-gdb, py-spy dump --native)",
                            who),
                "compare a second dump: who hangs is where it was, who is only slow has got on"};
        case Trace::transfer:
            return {
                fmt::format("look at the GPUs of {} and at the links between them: Xid messages (dmesg -T | grep -i "
                            "xid), nvidia-smi -q, ibstat, their logs with NCCL_DEBUG=INFO",
                            who),
                "compare a second dump: a call that hangs is still there"};
        case Trace::untold:
            return {fmt::format("read what {} wrote last: an error or a signal ends a process without a dump", who),
                    "import all dumps of the job: rankscope import FOLDER, with those of every host in it"};
        case Trace::called:
            break;
    }
    return {
        fmt::format("look where the program of {} stands or how it ended: {} log, py-spy dump --pid PID while it "
                    "hangs (an exception, a data loader, a lock, a checkpoint)",
                    who, their),
        "a branch that only some ranks take, around a call that all must make, looks the same: compare the places of "
        "the calls"};
}

}  // namespace rankscope::diagnose
