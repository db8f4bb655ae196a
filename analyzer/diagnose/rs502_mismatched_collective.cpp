// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/job_failure.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs502 {

/// Less than a job that ended is lost of one that goes on, but nothing of it can be relied on.
constexpr double kWrongResults = 0.5;

/// Ranks that called the same.
struct Side {
    facts::EndedCall call;
    std::vector<int> ranks;
};

bool isSame(const facts::EndedCall& a, const facts::EndedCall& b) {
    return a.op == b.op && a.bytes == b.bytes && a.dataType == b.dataType && a.peer == b.peer;
}

/// Largest first.
std::vector<Side> sidesOf(const std::vector<std::pair<int, facts::EndedCall>>& calls) {
    std::vector<Side> sides;
    for (const auto& [rank, call] : calls) {
        const auto known = std::ranges::find_if(sides, [&](const Side& side) { return isSame(side.call, call); });
        if (known == sides.end()) {
            sides.push_back({call, {rank}});
        } else {
            known->ranks.push_back(rank);
        }
    }
    std::ranges::stable_sort(sides, [](const Side& a, const Side& b) { return a.ranks.size() > b.ranks.size(); });
    return sides;
}

/// "op", "size, type".
std::string differenceText(const std::vector<Side>& sides) {
    const facts::EndedCall& first = sides.front().call;
    const auto differs = [&](auto&& of) {
        return std::ranges::any_of(sides, [&](const Side& side) { return of(side.call) != of(first); });
    };
    if (differs([](const auto& call) { return call.op; })) return "operation";
    std::vector<std::string> words;
    if (differs([](const auto& call) { return call.bytes; })) words.emplace_back("size");
    if (differs([](const auto& call) { return call.dataType; })) words.emplace_back("type");
    if (differs([](const auto& call) { return call.peer; })) words.emplace_back("root");
    return text::joined(words, " and ");
}

/// Whether the odd side called in the two collectives what the others called, the other way round.
bool changedPlaces(const facts::Contradiction& contradiction, const Side& usual, const Side& odd) {
    bool oddSwapped = false, usualSwapped = false;
    for (const auto& [rank, call] : contradiction.next) {
        if (text::contains(odd.ranks, rank)) oddSwapped = oddSwapped || isSame(call, usual.call);
        if (text::contains(usual.ranks, rank)) usualSwapped = usualSwapped || isSame(call, odd.call);
    }
    return oddSwapped && usualSwapped;
}

void detect(const job::Analysis& analysis, Claims&, std::vector<job::Finding>& findings) {
    const facts::Contradiction* contradiction = contradictionOf(analysis);
    if (!contradiction) return;
    const std::vector<Side> sides = sidesOf(contradiction->calls);
    if (sides.size() < 2) return;
    const facts::JobEnd& end = *analysis.facts.end;
    const bool hung = hasHung(end, *contradiction), isMessage = contradiction->isMessage();
    const bool hasMajority = 2 * sides.front().ranks.size() > contradiction->calls.size();
    job::Finding finding;
    finding.id = "RS502";
    finding.communicator = contradiction->communicator;
    for (const Side& side : sides)
        for (const int rank : side.ranks)
            (hasMajority && &side == &sides.front() ? finding.affectedRanks : finding.ranks).push_back(rank);
    std::ranges::sort(finding.ranks);
    std::string told;
    for (auto side = sides.rbegin(); side != sides.rend(); ++side)
        told += fmt::format("{}{} called {}", told.empty() ? "" : ", ", text::ranksText(side->ranks),
                            callText(analysis, side->call));
    const bool order = sides.size() == 2 && changedPlaces(*contradiction, sides[0], sides[1]);
    finding.cause = fmt::format("{}: they differ in {}", told,
                                isMessage ? "size"
                                : order   ? "order"
                                          : differenceText(sides));
    finding.evidence.facts.push_back(
        isMessage ? fmt::format("the two are one message, number {} from that rank to the other: messages are taken in "
                                "the order in which they were sent",
                                contradiction->seq + 1)
        : end.isRecorder
            ? "it is the first collective of the group, of those in the dumps, in which its members disagree"
            : fmt::format("it is the first collective of the group in which its members disagree; {} before it fit",
                          text::countedText(contradiction->seq, "collective")));
    if (order) finding.evidence.facts.push_back("the next one of the group is the same pair, the other way round");
    for (auto side = sides.rbegin(); side != sides.rend(); ++side)
        if (!side->call.place.empty())
            finding.evidence.facts.push_back(
                fmt::format("{} called it in {}", text::ranksText(side->ranks), side->call.place));
    finding.evidence.facts.push_back(isMessage ? "neither of them ever ended"
                                     : hung    ? "no member's kernel of it, or of a later one, ever ended"
                                               : "it ended all the same: what it left in memory is wrong, or luck");
    for (const int rank : finding.ranks)
        if (const facts::RankEnd* known = end.find(rank); known && finding.ranks.size() == 1)
            for (std::string& act : lastActs(analysis, *known)) finding.evidence.facts.push_back(std::move(act));
    for (const auto& [rank, call] : contradiction->calls)
        if (finding.evidence.rows.size() < FailureThresholds::kMostRows)
            finding.evidence.rows.push_back({"nccl_call", call.callId, rank, "called at this place"});
    if (isMessage) {
        finding.fix = {
            "have both ranks work the size out in the same way: a shape that depends on the rank or its data, or a "
            "send or receive too many before this one, is what lets them part"};
    } else {
        finding.fix = {
            fmt::format("make {} take the same way through the program as the others: a branch, a shape or an order "
                        "that depends on the rank or its data is what lets them part",
                        text::ranksText(finding.ranks)),
            "TORCH_DISTRIBUTED_DEBUG=DETAIL has PyTorch compare each collective before it is sent, and name the Python "
            "line"};
    }
    setLastWindow(analysis, finding);
    setWholeJob(analysis, hung ? 1 : kWrongResults, finding);
    findings.push_back(std::move(finding));
}

const Diagnosis kMismatchedCollective{
    .id = "RS502",
    .title = "mismatched collective",
    .definition =
        "Members of a communicator called different things as its k-th collective: another operation, size, "
        "type, root, or two in another order; or the two ends of a message that never ended differ in size. NCCL "
        "does not compare them: some hang, others give wrong results. Where most members agree, the odd ones are "
        "named, else all.",
    .falsePositives =
        "Recordings that lost calls, so that numbers do not fit; where the recording says so, nothing is "
        "said.",
    .fix = "Make all members call the same, in the same order.",
    .needs = Needs::events,
    .hint = "The framed collectives are one and the same for NCCL: compare their names and sizes.",
    .detect = detect,
};

}  // namespace rs502
}  // namespace rankscope::diagnose
