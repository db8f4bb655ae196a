// SPDX-License-Identifier: Apache-2.0
#include "collector/store/misplaced_rows.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>

#include "collector/store/error.h"
#include "collector/store/tables.h"

namespace rankscope::store {
namespace {

struct ExtentCheck {
    bool lost = false, shared = false;
    std::set<int64_t> strangers;  // ranks that table rank does not list
};

bool anyRow(Database& database, const std::string& table, int64_t first, int64_t last) {
    Statement any(database, "SELECT EXISTS (SELECT 1 FROM \"" + table + "\" WHERE id BETWEEN ?1 AND ?2)");
    any.bind(1, first).bind(2, last);
    return any.step() && any.integer(0) != 0;
}

ExtentCheck checkExtents(Database& database, const std::string& table) {
    ExtentCheck check;
    Statement extents(database,
                      "SELECT e.rank, e.first_id, e.last_id, r.rank IS NULL FROM extent e LEFT JOIN rank r ON r.rank = "
                      "e.rank WHERE e.table_name = ?1 AND e.last_id >= e.first_id ORDER BY e.first_id");
    extents.bind(1, std::string_view(table));
    int64_t next = INT64_MIN;  // first id behind what was seen
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

bool endsAreThere(Database& database, const std::string& table) {
    Statement missing(database,
                      "SELECT EXISTS (SELECT 1 FROM extent e WHERE e.table_name = ?1 AND e.last_id >= e.first_id AND "
                      "((SELECT rank FROM \"" +
                          table + "\" WHERE id = e.first_id) IS NOT e.rank OR (SELECT rank FROM \"" + table +
                          "\" WHERE id = e.last_id) IS NOT e.rank))");
    missing.bind(1, std::string_view(table));
    return missing.step() && missing.integer(0) == 0;
}

// Pages that SQLite cannot make sense of are the business of whoever reads them. Some tables are younger than the first
// traces.
void forEachTable(Database& database, const std::function<void(const std::string&)>& check) {
    for (const char* table : kEventTables) {
        if (database.integer("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '" +
                             std::string(table) + "'") == 0)
            continue;
        try {
            check(table);
        } catch (const DamagedFile&) {
        }
    }
}

std::string joined(const std::vector<std::string>& words, const char* between) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
    return text;
}

}  // namespace

std::vector<std::string> findMisplacedRows(Database& database) {
    std::vector<std::string> losing, sharing, strange, damage;
    std::set<int64_t> strangers;
    forEachTable(database, [&](const std::string& table) {
        const ExtentCheck check = checkExtents(database, table);
        if (check.lost) losing.push_back(table);
        if (check.shared) sharing.push_back(table);
        if (!check.strangers.empty()) strange.push_back(table);
        strangers.insert(check.strangers.begin(), check.strangers.end());
    });
    if (!losing.empty()) damage.push_back("table extent gives some events to no rank (" + joined(losing, ", ") + ")");
    if (!sharing.empty())
        damage.push_back("table extent gives some events to two ranks (" + joined(sharing, ", ") + ")");
    if (!strange.empty())
        damage.push_back("there are events of " + std::to_string(strangers.size()) +
                         (strangers.size() == 1 ? " rank" : " ranks") + " that table rank does not list (" +
                         joined(strange, ", ") + ")");
    return damage;
}

void refuseMisplacedRows(Database& database) {
    std::vector<std::string> damage = findMisplacedRows(database), wanting;
    forEachTable(database, [&](const std::string& table) {
        if (!endsAreThere(database, table)) wanting.push_back(table);
    });
    // Ends that overlap are another rank's, which is said already.
    if (damage.empty() && !wanting.empty())
        damage.push_back("events that table extent promises are missing, or are another rank's (" +
                         joined(wanting, ", ") + ")");
    if (!damage.empty())
        throw Error(database.file(), "damaged: " + joined(damage, "; "),
                    "make it again with `rankscope collect` or `rankscope import`");
}

}  // namespace rankscope::store
