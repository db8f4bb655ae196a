// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/step_agreement.h"

#include <algorithm>

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

/// Whether the ranks are in the same step when they meet.
bool agree(const std::vector<RankSummary>& summaries, const RankMarks& marks, const Encounters& encounters,
           Clock clock) {
    int64_t met = 0, across = 0;
    const auto count = [&](int32_t summary, int32_t call, int32_t otherSummary, int32_t otherCall) {
        const auto& own = marks[static_cast<size_t>(summary)];
        const auto& others = marks[static_cast<size_t>(otherSummary)];
        if (own.empty() || others.empty()) return;
        const auto& calls = summaries[static_cast<size_t>(summary)].calls;
        const auto& otherCalls = summaries[static_cast<size_t>(otherSummary)].calls;
        const int32_t step = stepOf(own, calls[static_cast<size_t>(call)], clock);
        const int32_t otherStep = stepOf(others, otherCalls[static_cast<size_t>(otherCall)], clock);
        // What sets the job up lies before a step on one rank, and in its first one on another.
        if (step < 0 || otherStep < 0 || step + 1 >= std::ssize(own) || otherStep + 1 >= std::ssize(others)) return;
        ++met;
        if (step != otherStep) ++across;
    };
    for (const InstanceGroup& group : encounters.collectives.groups) {
        const MemberCall& first = encounters.collectives.calls[group.first];
        for (size_t i = group.first + 1; i < group.last; ++i) {
            const MemberCall& other = encounters.collectives.calls[i];
            count(first.summary, first.call, other.summary, other.call);
        }
    }
    for (const MessagePair& pair : encounters.messages)
        if (pair.sendCall >= 0 && pair.recvCall >= 0)
            count(pair.sendSummary, pair.sendCall, pair.recvSummary, pair.recvCall);
    return static_cast<double>(across) <= kMostAcross * static_cast<double>(met);
}

bool agree(const std::vector<RankSummary>& summaries, const RankMarks& marks, const Encounters& encounters) {
    return agree(summaries, marks, encounters, Clock::host) || agree(summaries, marks, encounters, Clock::device);
}

}  // namespace

RankMarks agreeingMarks(const std::vector<RankSummary>& summaries, RankMarks marks, const Encounters& encounters) {
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

}  // namespace rankscope::collector
