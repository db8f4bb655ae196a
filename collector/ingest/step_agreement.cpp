// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/step_agreement.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace rankscope::collector {
namespace {

/// Encounters that may lie in different steps of their ranks: a call beside a boundary, seen from either side.
constexpr double kMostAcross = 0.05;

enum class Clock : uint8_t { host, device };

int32_t stepOf(const std::vector<StepMark>& marks, const CallFact& call, Clock clock) {
    // A call that was made up from its kernel has the kernel's start.
    const auto before = [clock](const StepMark& mark) { return clock == Clock::host ? mark.hostNs : mark.deviceNs; };
    const int64_t ns = clock == Clock::host ? call.hostStartNs : call.arrivalNs;
    const auto after =
        std::upper_bound(marks.begin(), marks.end(), ns,
                         [&before](int64_t wanted, const StepMark& mark) { return wanted < before(mark); });
    return static_cast<int32_t>(after - marks.begin()) - 1;
}

/// Two ranks that met, and the step that each was in by its own marks.
struct Meeting {
    size_t rank, other;
    int32_t step, otherStep;
};

/// Calls `take` for every meeting in a step whose two marks are there on both ranks: what sets the job up lies before a
/// step on one rank, and in its first one on another.
template <typename Take>
void forEachMeeting(const std::vector<RankSummary>& summaries, const RankMarks& marks, const Encounters& encounters,
                    Clock clock, const Take& take) {
    const auto meet = [&](int32_t summary, int32_t call, int32_t otherSummary, int32_t otherCall) {
        const auto rank = static_cast<size_t>(summary), other = static_cast<size_t>(otherSummary);
        const auto& own = marks[rank];
        const auto& others = marks[other];
        if (own.empty() || others.empty()) return;
        const int32_t step = stepOf(own, summaries[rank].calls[static_cast<size_t>(call)], clock);
        const int32_t otherStep = stepOf(others, summaries[other].calls[static_cast<size_t>(otherCall)], clock);
        if (step < 0 || otherStep < 0 || step + 1 >= std::ssize(own) || otherStep + 1 >= std::ssize(others)) return;
        take(Meeting{rank, other, step, otherStep});
    };
    for (const InstanceGroup& group : encounters.collectives.groups) {
        const MemberCall& first = encounters.collectives.calls[group.first];
        for (size_t i = group.first + 1; i < group.last; ++i) {
            const MemberCall& other = encounters.collectives.calls[i];
            meet(first.summary, first.call, other.summary, other.call);
        }
    }
    for (const MessagePair& pair : encounters.messages)
        if (pair.sendCall >= 0 && pair.recvCall >= 0)
            meet(pair.sendSummary, pair.sendCall, pair.recvSummary, pair.recvCall);
}

/// Whether the ranks are in the same step when they meet.
bool agree(const std::vector<RankSummary>& summaries, const RankMarks& marks, const Encounters& encounters,
           Clock clock) {
    int64_t met = 0, across = 0;
    forEachMeeting(summaries, marks, encounters, clock, [&](const Meeting& meeting) {
        ++met;
        if (meeting.step != meeting.otherStep) ++across;
    });
    return static_cast<double>(across) <= kMostAcross * static_cast<double>(met);
}

bool agree(const std::vector<RankSummary>& summaries, const RankMarks& marks, const Encounters& encounters) {
    return agree(summaries, marks, encounters, Clock::host) || agree(summaries, marks, encounters, Clock::device);
}

/// By how many steps two ranks' numbers differ in most of their meetings.
using Differences = std::map<int32_t, int64_t>;  // meetings by difference

int32_t mostFrequent(const Differences& differences) {
    return std::ranges::max_element(differences, {}, [](const auto& entry) { return entry.second; })->first;
}

/// Recordings that begin in the middle of the job do so in different steps of their ranks: each loses the marks before
/// the last rank's first one. The numbers of two ranks differ by what they do in most of their meetings; of ranks that
/// did not meet, by what those tell that both met.
RankMarks fromCommonBegin(const std::vector<RankSummary>& summaries, RankMarks marks, const Encounters& encounters,
                          Clock clock) {
    std::map<std::pair<size_t, size_t>, Differences> meetings;
    forEachMeeting(summaries, marks, encounters, clock, [&](const Meeting& meeting) {
        ++meetings[{meeting.rank, meeting.other}][meeting.step - meeting.otherStep];
    });
    std::vector<std::vector<std::pair<size_t, int32_t>>> knows(marks.size());  // a rank, and how much later it begins
    for (const auto& [ranks, differences] : meetings) {
        const int32_t later = mostFrequent(differences);
        knows[ranks.first].emplace_back(ranks.second, later);
        knows[ranks.second].emplace_back(ranks.first, -later);
    }
    std::vector<std::optional<int32_t>> begin(marks.size());
    for (size_t rank = 0; rank < marks.size(); ++rank) {
        if (begin[rank]) continue;
        begin[rank] = 0;
        std::vector<size_t> group{rank};
        for (size_t i = 0; i < group.size(); ++i)
            for (const auto& [other, later] : knows[group[i]]) {
                if (begin[other]) continue;
                begin[other] = *begin[group[i]] + later;
                group.push_back(other);
            }
        const int32_t last = *begin[*std::ranges::max_element(group, {}, [&](size_t one) { return *begin[one]; })];
        for (const size_t one : group) {
            auto& own = marks[one];
            own.erase(own.begin(), own.begin() + std::min<std::ptrdiff_t>(std::ssize(own), last - *begin[one]));
        }
    }
    return marks;
}

/// The surplus of marks is at the front of each rank, or behind; empty where the ranks agree on neither.
RankMarks withoutSurplus(const std::vector<RankSummary>& summaries, const RankMarks& marks,
                         const Encounters& encounters) {
    size_t fewest = SIZE_MAX, fewestOfAll = SIZE_MAX;
    bool anyCut = false;
    for (size_t s = 0; s < summaries.size(); ++s) {
        if (!summaries[s].computes && marks[s].empty()) continue;
        const bool whole = summaries[s].state == store::RankState::complete;
        if (whole && marks[s].empty()) return {};
        anyCut = anyCut || !whole;
        if (whole) fewest = std::min(fewest, marks[s].size());
        if (!marks[s].empty()) fewestOfAll = std::min(fewestOfAll, marks[s].size());
    }
    if (fewestOfAll == SIZE_MAX) return {};
    if (fewest == SIZE_MAX) fewest = fewestOfAll;
    if (fewest < 2) return {};

    const auto trimmed = [&](auto surplusAt) {
        RankMarks kept = marks;
        for (auto& own : kept) {
            if (own.size() <= fewest) continue;
            const auto surplus = static_cast<std::ptrdiff_t>(own.size() - fewest);
            own.erase(surplusAt(own), surplusAt(own) + surplus);
        }
        return kept;
    };
    const auto front = [](const std::vector<StepMark>& own) { return own.begin(); };
    const auto back = [fewest](const std::vector<StepMark>& own) {
        return own.begin() + static_cast<std::ptrdiff_t>(fewest);
    };
    // Ranks that are there to the end end together; those that were cut began together.
    RankMarks kept = anyCut ? trimmed(back) : trimmed(front);
    if (agree(summaries, kept, encounters)) return kept;
    kept = anyCut ? trimmed(front) : trimmed(back);
    if (agree(summaries, kept, encounters)) return kept;
    return {};
}

}  // namespace

RankMarks agreeingMarks(const std::vector<RankSummary>& summaries, const RankMarks& marks,
                        const Encounters& encounters) {
    RankMarks agreed = withoutSurplus(summaries, marks, encounters);
    for (const Clock clock : {Clock::host, Clock::device})
        if (agreed.empty())
            agreed = withoutSurplus(summaries, fromCommonBegin(summaries, marks, encounters, clock), encounters);
    return agreed;
}

}  // namespace rankscope::collector
