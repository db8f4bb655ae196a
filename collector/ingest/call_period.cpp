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
        return CallPeriod{tokens.size() - repeats * length, length, repeats};
    }
    return std::nullopt;
}

}  // namespace rankscope::collector
