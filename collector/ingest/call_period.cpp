// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/call_period.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace rankscope::collector {
namespace {

constexpr size_t kLeastRepeats = 3;
/// A period must hold from here on, in calls of the whole: what comes before (broadcasts of parameters) may differ.
constexpr size_t kLeadInShare = 4;
/// Longest period looked for: a step of more calls than this would be seen by its NVTX range.
constexpr size_t kLongestPeriod = 20'000;

std::vector<int32_t> tokensOf(const std::vector<CallFact>& calls, int32_t summaryIndex,
                              const CommunicatorSet& communicators) {
    using Key = std::tuple<int32_t, store::Op, int64_t, int32_t>;
    std::map<Key, int32_t> known;
    std::vector<int32_t> tokens;
    for (const CallFact& call : calls) {
        const int64_t bytes = call.op == store::Op::allToAll ? -1 : call.bytes;  // sizes follow the data there
        const Key key{communicators.joinedOf(summaryIndex, call.communicator), call.op, bytes, call.peer};
        tokens.push_back(known.try_emplace(key, static_cast<int32_t>(known.size())).first->second);
    }
    return tokens;
}

/// Length of the longest suffix in which every token equals the one `length` later.
size_t repeatingSuffix(const std::vector<int32_t>& tokens, size_t length, size_t atLeast) {
    size_t i = tokens.size() - length;
    while (i > 0 && tokens[i - 1] == tokens[i - 1 + length]) --i;
    const size_t suffix = tokens.size() - i;
    return suffix >= atLeast ? suffix : 0;
}

/// Calls of equal layers repeat themselves within a step. What tells the step is a forward pass, in which there are
/// none: a longer gap after every so many of them. It takes about half the time of the backward pass that it belongs
/// to, so that it is 1 + calls / 2 of the usual gaps long where nothing else runs; a quarter of that is asked for,
/// which what a job does every so many steps (it logs, it saves) hardly takes. A gap is longer from 1.5 usual ones on,
/// less than the least forward pass of two calls' layers. Chosen by that theory and one DDP job (6.9 usual gaps after
/// twelve calls), not held against recordings of others.
constexpr double kLongGap = 1.5, kForwardShare = 0.125;
/// Of the longer gaps so many come as regularly as that: a stall splits one distance in two, and one step in ten may
/// have one.
constexpr double kRegular = 0.8;

/// Where the repetitions of `shortest` come in a rhythm, the steps that it tells; else `shortest`.
CallPeriod byRhythm(const std::vector<CallFact>& calls, const CallPeriod& shortest) {
    std::vector<int64_t> gaps;  // from the arrival at a repetition to that at the next one
    for (size_t k = 0; k + 1 < shortest.repeats; ++k) {
        const size_t at = shortest.first + k * shortest.length;
        gaps.push_back(calls[at + shortest.length].arrivalNs - calls[at].arrivalNs);
    }
    if (gaps.empty()) return shortest;
    std::vector<int64_t> sorted = gaps;
    std::ranges::sort(sorted);
    const auto usualNs = static_cast<double>(sorted[sorted.size() / 2]);
    std::vector<size_t> behind;  // the repetitions behind the longer gaps
    for (size_t k = 0; k < gaps.size(); ++k)
        if (static_cast<double>(gaps[k]) > kLongGap * usualNs) behind.push_back(k + 1);
    if (behind.size() < kLeastRepeats) return shortest;
    std::map<size_t, size_t> distances;
    for (size_t i = 0; i + 1 < behind.size(); ++i) ++distances[behind[i + 1] - behind[i]];
    const auto [every, count] = *std::ranges::max_element(distances, {}, [](const auto& one) { return one.second; });
    if (static_cast<double>(count) < kRegular * static_cast<double>(behind.size() - 1)) return shortest;
    std::map<size_t, std::vector<int64_t>> phases;
    for (const size_t at : behind) phases[at % every].push_back(gaps[at - 1]);
    auto& [phase, longer] = *std::ranges::max_element(phases, {}, [](const auto& one) { return one.second.size(); });
    std::ranges::nth_element(longer, longer.begin() + static_cast<std::ptrdiff_t>(longer.size() / 2));
    if (static_cast<double>(longer[longer.size() / 2]) < usualNs * (1 + kForwardShare * static_cast<double>(every)))
        return shortest;
    const CallPeriod step{shortest.first + phase * shortest.length, every * shortest.length,
                          (shortest.repeats - phase) / every};
    return step.repeats < kLeastRepeats ? shortest : step;
}

}  // namespace

std::optional<CallPeriod> findCallPeriod(const RankSummary& summary, int32_t summaryIndex,
                                         const CommunicatorSet& communicators) {
    // A recording of a job that goes on, or was ended, has calls at its end that the device had not come to.
    std::vector<CallFact> calls = summary.calls;
    const auto hasKernel = [](const CallFact& call) { return call.kernelIndex >= 0; };
    calls.erase(std::find_if(calls.rbegin(), calls.rend(), hasKernel).base(), calls.end());
    if (!std::ranges::all_of(calls, hasKernel)) return std::nullopt;
    const std::vector<int32_t> tokens = tokensOf(calls, summaryIndex, communicators);
    const size_t most = std::min(tokens.size() / kLeastRepeats, kLongestPeriod);
    for (size_t length = 1; length <= most; ++length) {
        const size_t suffix = repeatingSuffix(tokens, length, tokens.size() - tokens.size() / kLeadInShare);
        if (suffix == 0) continue;
        const size_t repeats = suffix / length;
        if (repeats < kLeastRepeats) continue;
        return byRhythm(calls, {tokens.size() - repeats * length, length, repeats});
    }
    return std::nullopt;
}

}  // namespace rankscope::collector
