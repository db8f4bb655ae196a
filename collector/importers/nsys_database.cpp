// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/nsys_database.h"

#include "collector/importers/import_error.h"

namespace rankscope::collector {

namespace {

constexpr const char* kExportAgain =
    "export the report of Nsight Systems again: nsys export --type sqlite FILE.nsys-rep";

}  // namespace

NsysDatabase::NsysDatabase(const std::filesystem::path& file) : SqliteSource(file, kExportAgain) {
    try {
        // The key of the table's tree: found without reading all.
        bool idIsKey = false;
        store::Statement columns(m_database, "SELECT name, pk, type FROM pragma_table_info('StringIds')");
        while (columns.step())
            if (columns.text(0) == "id" && columns.integer(1) == 1 && columns.text(2) == "INTEGER") idIsKey = true;
        const bool strings = has("StringIds") && m_columns["StringIds"].count("value") > 0;
        if (strings && idIsKey) {
            m_string.emplace(m_database, "SELECT " + unlessTooLarge("value") + ", " + isTooLarge("value") +
                                             " FROM StringIds WHERE id = ?1");
        } else if (strings && m_columns["StringIds"].count("id") > 0) {
            store::Statement all(
                m_database, "SELECT id, " + unlessTooLarge("value") + ", " + isTooLarge("value") + " FROM StringIds");
            while (all.step()) {
                m_strings.emplace(all.integer(0), all.text(1));
                if (all.integer(2) != 0) m_largeStrings.insert(all.integer(0));
            }
        }
    } catch (const store::Error& error) {
        throw ImportError(file, 0, error.cause(), kExportAgain);
    }
    if (!has("StringIds") && !has("TARGET_INFO_GPU") && !has("ThreadNames"))
        throw ImportError(file, 0, "this SQLite database is no export of Nsight Systems: it has none of its tables",
                          "export a report: nsys export --type sqlite FILE.nsys-rep");
}

std::string_view NsysDatabase::string(int64_t id) {
    if (!m_string) {
        const auto known = m_strings.find(id);
        return known == m_strings.end() ? std::string_view() : known->second;
    }
    m_string->reset();
    m_string->bind(1, id);
    try {
        if (!m_string->step()) return {};
        if (m_string->integer(1) != 0) m_largeStrings.insert(id);
        return m_string->text(0);
    } catch (const store::Error&) {
        return {};  // a damaged page of texts: the rows stay, without their names
    }
}

std::string NsysDatabase::captured(const std::string& name) {
    std::string value;
    ImportLosses losses;  // a name more or less: nothing that anybody would miss
    forEach("META_DATA_CAPTURE", {"name", "value"}, losses, [&](const Row& row) {
        if (value.empty() && row.text(0) == name) value = row.text(1);
    });
    return value;
}

}  // namespace rankscope::collector
