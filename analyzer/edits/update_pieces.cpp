// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "analyzer/edits/resend.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::edits {
namespace {

constexpr int64_t kLongestEmptyNs =
    5'000;  // a kernel without work takes 2 to 5 us on the device, by its own time stamps

/// What a kernel of this rank takes without work: no more than its shortest one does with some.
int64_t emptyKernelNs(const replay::TaskGraph& graph, const ComputeLane& compute) {
    int64_t shortest = kLongestEmptyNs;
    for (replay::TaskId kernel : compute.kernels)
        if (graph.durationNs[kernel] > 0) shortest = std::min(shortest, graph.durationNs[kernel]);
    return shortest;
}

int32_t nameOf(const replay::TaskGraph& graph, replay::TaskId kernel) {
    const uint32_t key = graph.info[kernel].detail;
    return key < graph.kernelKeys.size() ? graph.kernelKeys[key].nameId : -1;
}

/// By place in a piece, by piece: its kernels. Empty: they are not alike.
std::vector<std::vector<replay::TaskId>> piecesOf(const replay::TaskGraph& graph, const ComputeLane& compute,
                                                  const std::vector<int64_t>& ready) {
    const int64_t length = ready[1] - ready[0];
    if (length < 1 || ready.front() < length - 1) return {};
    std::vector<std::vector<replay::TaskId>> places(static_cast<size_t>(length));
    for (size_t piece = 0; piece < ready.size(); ++piece) {
        if (piece > 0 && ready[piece] - ready[piece - 1] != length) return {};
        for (int64_t place = 0; place < length; ++place) {
            const replay::TaskId kernel = compute.kernels[static_cast<size_t>(ready[piece] - place)];
            std::vector<replay::TaskId>& kernels = places[static_cast<size_t>(place)];
            if (!kernels.empty() && nameOf(graph, kernel) != nameOf(graph, kernels.front())) return {};
            kernels.push_back(kernel);
        }
    }
    return places;
}

}  // namespace

void Resend::mergeKernels(const std::vector<replay::TaskId>& kernels, size_t first, size_t last, int64_t emptyNs) {
    std::vector<double> leads, calls;
    for (replay::TaskId kernel : kernels) {
        leads.push_back(static_cast<double>(m_graph.leadNs[m_index.launchOf(kernel)]));
        calls.push_back(static_cast<double>(m_graph.durationNs[m_index.launchOf(kernel)]));
    }
    const auto leadNs = std::llround(facts::median(std::move(leads))),
               callNs = std::llround(facts::median(std::move(calls)));
    int64_t workNs = 0;
    for (size_t piece = first; piece <= last; ++piece)
        workNs += std::max<int64_t>(0, m_graph.durationNs[kernels[piece]] - emptyNs);
    for (size_t piece = first; piece < last; ++piece) {
        m_draft.durationNs(kernels[piece]) = 0;
        m_draft.leadNs(kernels[piece]) = 0;
        // What the host did beyond the call stays.
        const replay::TaskId call = m_index.launchOf(kernels[piece]);
        m_draft.durationNs(call) = std::max<int64_t>(0, m_draft.durationNs(call) - callNs);
        m_draft.leadNs(call) = static_cast<uint32_t>(std::max<int64_t>(0, int64_t{m_draft.leadNs(call)} - leadNs));
    }
    m_draft.durationNs(kernels[last]) = std::min(emptyNs, m_graph.durationNs[kernels[last]]) + workNs;
}

void Resend::mergeUpdates(const RoundMember& member, const std::vector<int64_t>& ready) {
    if (member.ready.size() < 2 || ready.size() >= member.ready.size()) return;
    const ComputeLane& compute = m_index.compute(member.rank);
    const std::vector<std::vector<replay::TaskId>> places = piecesOf(m_graph, compute, member.ready);
    for (const std::vector<replay::TaskId>& kernels : places)
        for (replay::TaskId kernel : kernels)
            if (m_index.launchOf(kernel) == replay::kNoTask || m_index.launched(m_index.launchOf(kernel)) != 1) return;
    const int64_t emptyNs = emptyKernelNs(m_graph, compute);
    size_t first = 0;
    for (int64_t last : ready) {
        const auto at = std::find(member.ready.begin(), member.ready.end(), last);
        if (at == member.ready.end()) return;  // a bucket begins inside of a present one
        const auto piece = static_cast<size_t>(at - member.ready.begin());
        for (const std::vector<replay::TaskId>& kernels : places)
            if (piece > first) mergeKernels(kernels, first, piece, emptyNs);
        first = piece + 1;
    }
}

}  // namespace rankscope::edits
