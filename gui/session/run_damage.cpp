// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_damage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "collector/store/error.h"
#include "collector/store/whole_file.h"

namespace rankscope::gui {
namespace {

using store::Statement;

constexpr const char* kEventTables[] = {"kernel", "memcpy", "memset", "nvtx", "api_call", "nccl_call"};

std::string rows(int64_t count) { return count == 1 ? "1 row" : fmt::format("{} rows", count); }

void findWrongTypes(store::TraceReader& reader, std::vector<std::string>& damage) {
    for (const char* table : {"meta", "string", "host", "clock_model", "rank", "thread", "stream", "step", "loss", "extent", "attribution", "finding"})
        if (const int64_t wrong = store::rowsOfWrongType(reader.database(), table); wrong > 0) damage.push_back(fmt::format("{} of table {} {} values of a wrong type", rows(wrong), table, wrong == 1 ? "holds" : "hold"));
}

// Ids of strings are 1, 2, 3…
void findMissingStrings(store::TraceReader& reader, std::vector<std::string>& damage) {
    const int64_t count = reader.database().integer("SELECT count(*) FROM string"), last = reader.database().integer("SELECT max(id) FROM string");
    if (last != count) damage.push_back(fmt::format("table string holds {} of {} names", count, last));
}

// What table extent says of an event table.
struct ExtentCheck {
    bool lost = false, shared = false;
    std::set<int64_t> strangers;   // ranks that table rank does not list
};

bool anyRow(store::Database& database, const std::string& table, int64_t first, int64_t last) {
    Statement any(database, "SELECT EXISTS (SELECT 1 FROM \"" + table + "\" WHERE id BETWEEN ?1 AND ?2)");
    any.bind(1, first).bind(2, last);
    return any.step() && any.integer(0) != 0;
}

ExtentCheck checkExtents(store::Database& database, const std::string& table) {
    ExtentCheck check;
    Statement extents(database,
                      "SELECT e.rank, e.first_id, e.last_id, r.rank IS NULL FROM extent e LEFT JOIN rank r ON r.rank = e.rank WHERE e.table_name = ?1 AND e.last_id >= e.first_id "
                      "ORDER BY e.first_id");
    extents.bind(1, std::string_view(table));
    int64_t next = INT64_MIN;   // first id behind what was seen
    while (extents.step()) {
        const int64_t first = extents.integer(1), last = std::min(extents.integer(2), INT64_MAX - 1);
        check.shared = check.shared || first < next;
        check.lost = check.lost || (first > next && anyRow(database, table, next, first - 1));
        if (extents.integer(3) != 0 && anyRow(database, table, first, last)) check.strangers.insert(extents.integer(0));
        next = std::max(next, last + 1);
    }
    check.lost = check.lost || anyRow(database, table, next, INT64_MAX);
    return check;
}

void findMisplacedEvents(store::TraceReader& reader, std::vector<std::string>& damage) {
    std::vector<std::string> losing, sharing, strange;
    std::set<int64_t> strangers;
    const auto checked = [&](const char* table) {
        try {
            return checkExtents(reader.database(), table);
        } catch (const store::DamagedFile&) {
            return ExtentCheck{};   // each rank that has events there will say so
        }
    };
    for (const char* table : kEventTables) {
        const ExtentCheck check = checked(table);
        if (check.lost) losing.emplace_back(table);
        if (check.shared) sharing.emplace_back(table);
        if (!check.strangers.empty()) strange.emplace_back(table);
        strangers.insert(check.strangers.begin(), check.strangers.end());
    }
    if (!losing.empty()) damage.push_back(fmt::format("table extent gives some events to no rank ({})", fmt::join(losing, ", ")));
    if (!sharing.empty()) damage.push_back(fmt::format("table extent gives some events to two ranks ({})", fmt::join(sharing, ", ")));
    if (!strange.empty()) damage.push_back(fmt::format("there are events of {} {} that table rank does not list ({})", strangers.size(), strangers.size() == 1 ? "rank" : "ranks", fmt::join(strange, ", ")));
}

}  // namespace

std::vector<std::string> findRunDamage(store::TraceReader& reader) {
    std::vector<std::string> damage;
    const store::Transaction oneState(reader.database());   // a writer's new rows come together with their extent
    findWrongTypes(reader, damage);
    findMissingStrings(reader, damage);
    findMisplacedEvents(reader, damage);
    return damage;
}

}  // namespace rankscope::gui
