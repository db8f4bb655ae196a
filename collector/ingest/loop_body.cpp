// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/loop_body.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_set>

namespace rankscope::collector {
namespace {

/// So many kernels in a row tell a place in the program.
constexpr size_t kPlace = 8;
/// What the end of an update leaves to the step before is no more of its compute time: a forward pass takes a third. A
/// recording that began inside a backward pass knows that pass alone from before the first update.
constexpr double kMostPast = 0.25;

/// The compute kernels of a part of the sequence. Those that repeat themselves count once: how many layers are gathered
/// ahead, or gradients set to zero, may differ from step to step.
struct Part {
    std::vector<int32_t> names;
    std::vector<size_t> firsts, lasts;  ///< in the sequence
    std::vector<double> timesNs;
};

Part partOf(const KernelSequence& kernels, size_t first, size_t last) {
    Part part;
    for (size_t i = first; i < last; ++i) {
        if (kernels[i].communicates) continue;
        if (part.names.empty() || part.names.back() != kernels[i].nameId) {
            part.names.push_back(kernels[i].nameId);
            part.firsts.push_back(i);
            part.lasts.push_back(i);
            part.timesNs.push_back(0);
        }
        part.lasts.back() = i;
        part.timesNs.back() += static_cast<double>(kernels[i].durNs);
    }
    return part;
}

using Place = std::vector<int32_t>;

/// One number for the kPlace names from `at` on (FNV-1a).
uint64_t placeHash(const std::vector<int32_t>& names, size_t at) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = at; i < at + kPlace; ++i) hash = (hash ^ static_cast<uint32_t>(names[i])) * 0x100000001b3;
    return hash;
}

/// Which of the part's kernels begins the first `place` in it.
std::optional<size_t> find(const Place& place, const Part& part) {
    const auto at = std::search(part.names.begin(), part.names.end(), place.begin(), place.end());
    if (at == part.names.end()) return std::nullopt;
    return static_cast<size_t>(at - part.names.begin());
}

/// The first place of `later` that is in `before`, too, if it is near its beginning.
std::optional<Place> commonPlace(const Part& before, const Part& later) {
    std::unordered_set<uint64_t> places;
    for (size_t at = 0; at + kPlace <= before.names.size(); ++at) places.insert(placeHash(before.names, at));
    const double mostNs = kMostPast * std::accumulate(later.timesNs.begin(), later.timesNs.end(), 0.0);
    double pastNs = 0;
    for (size_t at = 0; at + kPlace <= later.names.size() && pastNs <= mostNs; pastNs += later.timesNs[at++]) {
        if (!places.count(placeHash(later.names, at))) continue;
        const auto first = later.names.begin() + static_cast<std::ptrdiff_t>(at);
        Place place(first, first + kPlace);
        if (find(place, before)) return place;  // no two places with one hash
    }
    return std::nullopt;
}

/// How many kernels that communicate stand in front of a place, of those that `known` holds.
size_t receivedBefore(const KernelSequence& kernels, size_t place, const std::set<int32_t>& known) {
    size_t count = 0;
    while (count < place && kernels[place - count - 1].communicates && known.count(kernels[place - count - 1].nameId))
        ++count;
    return count;
}

}  // namespace

Cuts cutsByLoop(const KernelSequence& kernels, const Cuts& ends, size_t firstUpdate) {
    if (ends.size() < 2) return ends;
    const Part before = partOf(kernels, 0, firstUpdate);
    // The first steps may differ from the others, and the last one may not be whole.
    const size_t middle = (ends.size() - 1) / 2;
    const auto place = commonPlace(before, partOf(kernels, ends[middle], ends[middle + 1]));
    if (!place) return ends;
    const size_t first = before.firsts[*find(*place, before)];
    // What no step does before an update, such as the gathering of new parameters, is of the update's step.
    std::set<int32_t> ofAStep;
    for (size_t i = first; i < firstUpdate; ++i)
        if (kernels[i].communicates) ofAStep.insert(kernels[i].nameId);
    Cuts cuts{first};
    size_t past = 0;  // kernels between the end of an update and the next step
    for (size_t k = 0; k + 1 < ends.size(); ++k) {
        const Part part = partOf(kernels, ends[k], ends[k + 1]);
        const auto begin = find(*place, part);
        cuts.push_back(ends[k]);
        if (!begin) continue;
        const size_t received = receivedBefore(kernels, part.firsts[*begin], ofAStep);
        cuts[0] = first - std::min(received, receivedBefore(kernels, first, ofAStep));
        cuts.back() = std::max(ends[k], part.firsts[*begin] - received);
        past = cuts.back() - ends[k];
    }
    cuts.push_back(std::min(ends.back() + past, kernels.size()));
    return cuts;
}

}  // namespace rankscope::collector
