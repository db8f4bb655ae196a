// SPDX-License-Identifier: Apache-2.0
#include "gui/session/sql_question.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <string_view>

#include "collector/store/error.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

constexpr int kOpsBetweenLooks = 10'000;  // of SQLite's machine: some 100 us
constexpr size_t kLongestCell = 400;

// While it lives, statements of a connection may read and no more, and end when the time is up.
class ReadingOnly {
  public:
    ReadingOnly(store::Database& database, const std::atomic<bool>& cancelled)
        : m_handle(database.handle()), m_cancelled(cancelled) {
        sqlite3_set_authorizer(m_handle, allow, nullptr);
        sqlite3_progress_handler(m_handle, kOpsBetweenLooks, isOver, this);
    }
    ~ReadingOnly() {
        sqlite3_progress_handler(m_handle, 0, nullptr, nullptr);
        sqlite3_set_authorizer(m_handle, nullptr, nullptr);
    }
    ReadingOnly(const ReadingOnly&) = delete;
    ReadingOnly& operator=(const ReadingOnly&) = delete;

    bool timeIsUp() const { return std::chrono::steady_clock::now() >= m_end; }

  private:
    static int allow(void*, int action, const char*, const char* second, const char*, const char*) {
        if (action == SQLITE_FUNCTION)
            return second && std::string_view(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
        return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE ? SQLITE_OK : SQLITE_DENY;
    }
    static int isOver(void* self) {
        const auto& reading = *static_cast<const ReadingOnly*>(self);
        return reading.m_cancelled || reading.timeIsUp();
    }

    sqlite3* m_handle;
    const std::atomic<bool>& m_cancelled;
    std::chrono::steady_clock::time_point m_end =
        std::chrono::steady_clock::now() + std::chrono::seconds(kMostSqlSeconds);
};

bool isOneStatement(const store::Statement& statement, const std::string& sql) {
    const std::string_view first = sqlite3_sql(statement.handle());
    return std::string_view(sql).substr(std::min(sql.size(), first.size())).find_first_not_of(" \t\r\n;") ==
           std::string_view::npos;
}

std::string cellText(const store::Statement& row, int column) {
    if (row.isNull(column)) return {};
    if (sqlite3_column_type(row.handle(), column) == SQLITE_BLOB)
        return fmt::format("{} bytes", sqlite3_column_bytes(row.handle(), column));
    return displayText(row.text(column), kLongestCell);
}

}  // namespace

SqlAnswer askSql(store::TraceReader& reader, const std::string& sql, const std::atomic<bool>& cancelled) {
    SqlAnswer answer;
    if (sql.find_first_not_of(" \t\r\n;") == std::string::npos) {
        answer.wrong = "there is no question";
        return answer;
    }
    const ReadingOnly reading(reader.database(), cancelled);
    try {
        store::Statement statement(reader.database(), sql);
        if (sqlite3_sql(statement.handle()) == nullptr) {  // comments alone
            answer.wrong = "there is no question";
            return answer;
        }
        if (!isOneStatement(statement, sql)) {
            answer.wrong = "one SELECT at a time";
            return answer;
        }
        for (int i = 0; i < sqlite3_column_count(statement.handle()); ++i)
            answer.columns.push_back(displayText(sqlite3_column_name(statement.handle(), i), kLongestCell));
        while (statement.step()) {
            if (answer.rows.size() == kMostSqlRows) {
                answer.cut = true;
                return answer;
            }
            std::vector<std::string>& row = answer.rows.emplace_back();
            for (int i = 0; i < static_cast<int>(answer.columns.size()); ++i) row.push_back(cellText(statement, i));
        }
    } catch (const store::Error& error) {
        if (reading.timeIsUp())
            answer.cut = true;
        else
            answer.wrong = cancelled ? "cancelled" : displayText(error.cause(), 2000);
    }
    return answer;
}

}  // namespace rankscope::gui
