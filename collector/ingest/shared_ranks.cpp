// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/shared_ranks.h"

#include "collector/ingest/packed_ranks.h"
#include "collector/ingest/side_by_side.h"
#include "collector/ingest/trace_tables.h"
#include "collector/team/packing.h"

namespace rankscope::collector {
namespace {

std::vector<store::EncodedRows> encoded(RankRecording& recording, const RankTranslation& to) {
    std::vector<int32_t> traceIds(recording.strings.size(), 0);
    size_t next = 0;
    forEachName(recording, [&](int32_t& id) {
        int32_t& traceId = traceIds[static_cast<size_t>(id)];
        if (traceId == 0) traceId = to.names.at(next++);
        id = traceId;
    });
    std::vector<store::EncodedRows> tables;
    forEachEventTable(recording, [&]<typename Row>(const std::vector<Row>& rows) {
        if (!rows.empty()) tables.push_back(store::encodeRows(std::span<const Row>(rows)));
    });
    return tables;
}

}  // namespace

std::vector<std::string> namesOf(RankRecording& recording) {
    std::vector<bool> known(recording.strings.size());
    std::vector<std::string> names;
    forEachName(recording, [&](int32_t id) {
        if (known[static_cast<size_t>(id)]) return;
        known[static_cast<size_t>(id)] = true;
        names.push_back(recording.strings[id]);
    });
    return names;
}

void helpBuildTrace(RankSources& sources, team::Team& team, uint64_t keepBytes) {
    std::vector<std::vector<std::string>> names(sources.size());
    std::vector<RankSummary> summaries = sources.prepareAll(
        team.threads(), keepBytes, [&](size_t i, RankRecording& recording) { names[i] = namesOf(recording); });
    for (size_t i = 0; i < summaries.size(); ++i) {
        team.send(team::Packer()(summaries[i])(names[i]).take());
        summaries[i] = {};
    }
    const std::string answer = team.await();
    const auto translations = team::Unpacker(answer, team.nameOf(0)).get<std::vector<RankTranslation>>();
    std::vector<std::string> rows(sources.size());
    sideBySide(sources.size(), team.threads(), [&](size_t i) {
        const std::unique_ptr<RankRecording> recording = sources.take(i);
        translate(translations.at(i), *recording);
        rows[i] = team::Packer()(encoded(*recording, translations[i])).take();
    });
    for (std::string& message : rows) team.send(std::exchange(message, {}));
}

}  // namespace rankscope::collector
