// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/rank_sources.h"

#include <algorithm>

#include "collector/ingest/rank_preparation.h"
#include "collector/ingest/side_by_side.h"

namespace rankscope::collector {
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
        if (!source.mustKeep && m_keptBytes >= keepBytes) return;
        // One by itself is in memory in any case.
        if (m_sources.size() > 1) source.events.emplace(*recording);
        const uint64_t bytes = source.events ? source.events->bytes() : 0;
        if (m_keptBytes.fetch_add(bytes) + bytes > keepBytes && !source.mustKeep) {
            m_keptBytes -= bytes;
            source.events.reset();
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
    if (source.ready) {
        if (source.events) source.events->unpack(*source.kept);
        source.events.reset();
        return std::move(source.kept);
    }
    auto recording = std::make_unique<RankRecording>(source.load());
    recording->rank = source.rank;
    prepare(*recording);
    return recording;
}

}  // namespace rankscope::collector
