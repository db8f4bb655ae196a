// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/collective_alignment.h"

#include <algorithm>
#include <cstdlib>

namespace rankscope::collector {

namespace {

// Pairs looked at per candidate: enough to tell a wrong shift, cheap for traces of millions of collectives.
constexpr size_t kMaxPairs = 512;
// Recordings of one job start within a few collectives of each other, unless times say otherwise.
constexpr int64_t kMaxShift = 64;
// Members of a real 8-GPU job leave a collective within 7 us of each other; a slow copy engine or a rough clock costs
// more.
constexpr int64_t kEndToleranceNs = 200'000;
// Some pairs may disagree: a kernel that was cut by the recording's edge.
constexpr double kAgreeingShare = 0.8;

struct Score {
    size_t pairs = 0;
    size_t opsDiffer = 0;
    size_t synchronizing = 0;
    size_t together = 0;  // of the synchronizing ones: overlapping in time and ending together
};

bool ranTogether(const SequencedCall& a, const SequencedCall& b) {
    if (a.startNs > b.endNs || b.startNs > a.endNs) return false;
    const int64_t shorter = std::min(a.endNs - a.startNs, b.endNs - b.startNs);
    return std::abs(a.endNs - b.endNs) <= std::max(kEndToleranceNs, shorter / 10);
}

Score score(const CallSequence& reference, const CallSequence& other, int64_t shift) {
    Score result;
    const auto first = static_cast<size_t>(std::max<int64_t>(0, -shift));
    const int64_t behind =
        std::min<int64_t>(static_cast<int64_t>(other.size()), static_cast<int64_t>(reference.size()) - shift);
    if (behind <= static_cast<int64_t>(first)) return result;
    const size_t count = static_cast<size_t>(behind) - first;
    const size_t stride = count / kMaxPairs + 1;
    for (size_t j = first; j < static_cast<size_t>(behind); j += stride) {
        const SequencedCall& a = reference[static_cast<size_t>(static_cast<int64_t>(j) + shift)];
        const SequencedCall& b = other[j];
        ++result.pairs;
        const bool sizesDiffer = (a.bytes && b.bytes && *a.bytes != *b.bytes) ||
                                 (a.groupSize > 0 && b.groupSize > 0 && a.groupSize != b.groupSize);
        if (a.op != b.op || sizesDiffer) ++result.opsDiffer;
        // A call of unknown kind (a kernel named SendRecv) counts as synchronizing: an all-to-all is the usual case,
        // and where it is not, times differ.
        if (!store::isSynchronizing(a.op) && a.op != store::Op::unknown) continue;
        ++result.synchronizing;
        if (ranTogether(a, b)) ++result.together;
    }
    return result;
}

bool sameFrameworkNumbers(const CallSequence& sequence) {
    return !sequence.empty() && std::all_of(sequence.begin(), sequence.end(),
                                            [](const SequencedCall& call) { return call.frameworkSeq.has_value(); });
}

}  // namespace

std::optional<Alignment> alignSequences(const CallSequence& reference, const CallSequence& other) {
    if (reference.empty() || other.empty()) return std::nullopt;

    std::vector<int64_t> shifts;
    for (int64_t distance = 0; distance <= kMaxShift; ++distance) {
        shifts.push_back(distance);
        if (distance > 0) shifts.push_back(-distance);
    }
    if (sameFrameworkNumbers(reference) && sameFrameworkNumbers(other)) {
        // The framework counts the collectives of a group on every member alike.
        shifts.insert(shifts.begin(), *other.front().frameworkSeq - *reference.front().frameworkSeq);
    }
    // Where the first and the last call of `other` fall by time.
    const auto atOrAfter = [&](const SequencedCall& call) {
        return std::lower_bound(reference.begin(), reference.end(), call.endNs,
                                [](const SequencedCall& a, int64_t endNs) { return a.endNs < endNs; }) -
               reference.begin();
    };
    for (const int64_t near : {-1, 0, 1}) {
        shifts.push_back(atOrAfter(other.front()) + near);
        shifts.push_back(atOrAfter(other.back()) + near - static_cast<int64_t>(other.size()) + 1);
    }

    std::optional<Alignment> best;
    size_t bestTogether = 0;
    for (const int64_t shift : shifts) {
        const Score found = score(reference, other, shift);
        if (found.pairs == 0 || found.opsDiffer > 0 || found.synchronizing == 0) continue;
        if (static_cast<double>(found.together) < kAgreeingShare * static_cast<double>(found.synchronizing)) continue;
        if (found.together > bestTogether) {
            bestTogether = found.together;
            best = Alignment{shift, true};
        }
    }
    if (best) return best;
    const Score straight = score(reference, other, 0);
    if (reference.size() == other.size() && straight.opsDiffer == 0) return Alignment{0, false};
    return std::nullopt;
}

}  // namespace rankscope::collector
