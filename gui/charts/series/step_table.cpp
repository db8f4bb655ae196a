// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/step_table.h"

#include <algorithm>
#include <utility>

namespace rankscope::gui {
namespace {

int64_t sound(int64_t ns) {
    return soundRange(ns, ns).beginNs;
}

}  // namespace

int32_t StepTable::stageOf(int32_t rank) const noexcept {
    const auto found = stages.find(rank);
    return found == stages.end() ? 0 : found->second;
}

bool StepTable::isAnalyzed() const noexcept {
    return std::any_of(rows.begin(), rows.end(), [](const StepRow& row) { return row.computeNs.has_value(); });
}

size_t StepTable::find(int32_t rank, int64_t step) const noexcept {
    const auto found = std::partition_point(rows.begin(), rows.end(), [&](const StepRow& row) {
        return std::pair<int64_t, int64_t>(row.rank, row.step) < std::pair<int64_t, int64_t>(rank, step);
    });
    return found != rows.end() && found->rank == rank && found->step == step ? static_cast<size_t>(found - rows.begin())
                                                                             : rows.size();
}

size_t StepTable::at(int32_t rank, int64_t ns) const noexcept {
    // Steps of a rank follow each other in time.
    const auto after = std::partition_point(rows.begin(), rows.end(), [&](const StepRow& row) {
        return row.rank < rank || (row.rank == rank && row.startNs <= ns);
    });
    if (after == rows.begin()) return rows.size();
    const StepRow& row = *std::prev(after);
    return row.rank == rank && ns < row.startNs + row.durNs ? static_cast<size_t>(after - rows.begin()) - 1
                                                            : rows.size();
}

StepTable readStepTable(store::TraceReader& reader, const RunOutline& outline) {
    StepTable table;
    for (const OutlineRank& rank : outline.ranks)
        if (const auto stage = rank.places.find("pp"); stage != rank.places.end())
            table.stages[rank.rank] = stage->second;
    store::Statement query(
        reader.database(),
        "SELECT s.rank, s.step, s.start_ns, s.dur_ns, s.warm_up, a.compute_ns, a.exposed_wait_ns FROM step s LEFT JOIN "
        "attribution a ON a.rank = s.rank AND a.step = s.step WHERE s.rank BETWEEN 0 AND 1048575 AND s.step BETWEEN 0 "
        "AND 1000000000 AND s.dur_ns >= 0 ORDER BY s.rank, s.step LIMIT ?1");
    query.bind(1, StepTable::kMostRows + 1);
    while (query.step()) {
        if (static_cast<int64_t>(table.rows.size()) == StepTable::kMostRows) {
            table.cut = true;
            break;
        }
        StepRow row{static_cast<int32_t>(query.integer(0)),
                    static_cast<int32_t>(query.integer(1)),
                    sound(query.integer(2)),
                    sound(query.integer(3)),
                    query.integer(4) != 0,
                    {},
                    {}};
        if (!query.isNull(5)) row.computeNs = sound(query.integer(5));
        if (!query.isNull(6)) row.waitNs = sound(query.integer(6));
        table.rows.push_back(row);
    }
    return table;
}

}  // namespace rankscope::gui
