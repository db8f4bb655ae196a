// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/rank_sources.h"

#include <algorithm>

#include "collector/ingest/rank_preparation.h"
#include "collector/ingest/side_by_side.h"

namespace rankscope::collector {
namespace {

uint64_t bytesOf(const RankRecording& recording) {
    const auto bytes = [](const auto& rows) { return rows.capacity() * sizeof(rows[0]); };
    return bytes(recording.kernels) + bytes(recording.memcpys) + bytes(recording.memsets) + bytes(recording.apiCalls) +
           bytes(recording.synchronizations) + bytes(recording.cudaEvents) + bytes(recording.allocations) +
           bytes(recording.nvtx) + bytes(recording.ncclCalls) + bytes(recording.proxyOps) +
           bytes(recording.kernelSummaries) + bytes(recording.kernelSpans) + bytes(recording.counters);
}

}  // namespace

void RankSources::add(int32_t rank, Load load) {
    Source& source = m_sources.emplace_back();
    source.rank = rank;
    source.load = std::move(load);
}

void RankSources::add(RankRecording recording) {
    Source& source = m_sources.emplace_back();
    source.rank = recording.rank;
    source.kept = std::make_unique<RankRecording>(std::move(recording));
    source.mustKeep = true;
}

/// The order in which threads take ranks changes nothing but which recordings stay in memory.
std::vector<RankSummary> RankSources::prepareAll(unsigned threads, uint64_t keepBytes,
                                                 const std::function<void(size_t, RankRecording&)>& look) {
    std::ranges::stable_sort(m_sources, {}, &Source::rank);
    std::vector<RankSummary> summaries(m_sources.size());
    const auto prepareOne = [&](size_t index) {
        Source& source = m_sources[index];
        std::unique_ptr<RankRecording> recording =
            source.kept ? std::move(source.kept) : std::make_unique<RankRecording>(source.load());
        recording->rank = source.rank;
        prepare(*recording);
        summaries[index] = summarize(*recording);
        if (look) look(index, *recording);
        const uint64_t bytes = bytesOf(*recording);
        if (!source.mustKeep && m_keptBytes.fetch_add(bytes) + bytes > keepBytes) {
            m_keptBytes -= bytes;
            return;
        }
        source.kept = std::move(recording);
        source.ready = true;
    };
    sideBySide(m_sources.size(), threads, prepareOne);
    return summaries;
}

std::unique_ptr<RankRecording> RankSources::take(size_t index) {
    Source& source = m_sources[index];
    if (source.ready) return std::move(source.kept);
    auto recording = std::make_unique<RankRecording>(source.load());
    recording->rank = source.rank;
    prepare(*recording);
    return recording;
}

}  // namespace rankscope::collector
