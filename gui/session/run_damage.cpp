// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_damage.h"

#include <fmt/format.h>

#include "collector/store/misplaced_rows.h"
#include "collector/store/whole_file.h"

namespace rankscope::gui {
namespace {

std::string rows(int64_t count) {
    return count == 1 ? "1 row" : fmt::format("{} rows", count);
}

void findWrongTypes(store::TraceReader& reader, std::vector<std::string>& damage) {
    for (const char* table : {"meta", "string", "host", "clock_model", "rank", "thread", "stream", "step", "loss",
                              "extent", "attribution", "finding"})
        if (const int64_t wrong = store::rowsOfWrongType(reader.database(), table); wrong > 0)
            damage.push_back(fmt::format("{} of table {} {} values of a wrong type", rows(wrong), table,
                                         wrong == 1 ? "holds" : "hold"));
}

void findNegativeSteps(store::TraceReader& reader, std::vector<std::string>& damage) {
    const int64_t negative =
        reader.database().integer("SELECT count(*) FROM step WHERE typeof(dur_ns) = 'integer' AND dur_ns < 0");
    if (negative > 0)
        damage.push_back(
            fmt::format("{} of table step {} a negative duration", rows(negative), negative == 1 ? "has" : "have"));
}

// Ids of strings are 1, 2, 3…
void findMissingStrings(store::TraceReader& reader, std::vector<std::string>& damage) {
    const int64_t count = reader.database().integer("SELECT count(*) FROM string"),
                  last = reader.database().integer("SELECT max(id) FROM string");
    if (last != count) damage.push_back(fmt::format("table string holds {} of {} names", count, last));
}

}  // namespace

std::vector<std::string> findRunDamage(store::TraceReader& reader) {
    std::vector<std::string> damage;
    const store::Transaction oneState(reader.database());  // a writer's new rows come together with their extent
    findWrongTypes(reader, damage);
    findNegativeSteps(reader, damage);
    findMissingStrings(reader, damage);
    for (std::string& misplaced : store::findMisplacedRows(reader.database())) damage.push_back(std::move(misplaced));
    return damage;
}

}  // namespace rankscope::gui
