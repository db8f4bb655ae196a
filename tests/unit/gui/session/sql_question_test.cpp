// SPDX-License-Identifier: Apache-2.0
#include "gui/session/sql_question.h"

#include <gtest/gtest.h>

#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::kGoOn;
using test::SmallRun;

SqlAnswer ask(const SmallRun& file, const std::string& sql) {
    auto reader = file.reader();
    return askSql(reader, sql, kGoOn);
}

TEST(SqlQuestion, IsAnsweredByATable) {
    const SqlAnswer answer = ask(SmallRun(), "SELECT rank, count(*) AS kernels, NULL FROM kernel GROUP BY rank;\n");
    EXPECT_EQ(answer.wrong, "");
    EXPECT_EQ(answer.columns, (std::vector<std::string>{"rank", "kernels", "NULL"}));
    EXPECT_EQ(answer.rows, (std::vector<std::vector<std::string>>{{"0", "3", ""}, {"1", "3", ""}}));
    EXPECT_FALSE(answer.cut);
}

TEST(SqlQuestion, CanChangeNothing) {
    const SmallRun file;
    const std::string other = (file.folder.file().parent_path() / "made.db").string();
    for (const std::string& sql :
         {std::string("DELETE FROM kernel"), std::string("DROP TABLE kernel"), std::string("PRAGMA journal_mode = OFF"),
          std::string("CREATE TEMP TABLE mine (a)"), "ATTACH '" + other + "' AS other", "VACUUM INTO '" + other + "'",
          std::string("SELECT load_extension('x')")})
        EXPECT_NE(ask(file, sql).wrong, "") << sql;
    EXPECT_FALSE(std::filesystem::exists(other));
    EXPECT_EQ(ask(file, "SELECT count(*) FROM kernel").rows[0][0], "6");
}

TEST(SqlQuestion, SaysWhatIsWrongWithIt) {
    EXPECT_NE(ask(SmallRun(), "SELECT nothing FROM nowhere").wrong.find("nowhere"), std::string::npos);
    EXPECT_EQ(ask(SmallRun(), " \n;").wrong, "there is no question");
    EXPECT_EQ(ask(SmallRun(), "-- a note").wrong, "there is no question");
    EXPECT_EQ(ask(SmallRun(), "SELECT 1; SELECT 2").wrong, "one SELECT at a time");
}

TEST(SqlQuestion, EndsEarlyWhenThereIsTooMuchOrNobodyWaits) {
    const std::string endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT ";
    const SqlAnswer many = ask(SmallRun(), endless + "i FROM n");
    EXPECT_EQ(many.rows.size(), kMostSqlRows);
    EXPECT_TRUE(many.cut);
    const SmallRun file;
    auto reader = file.reader();
    const std::atomic<bool> cancelled{true};
    EXPECT_EQ(askSql(reader, endless + "count(*) FROM n", cancelled).wrong, "cancelled");
}

}  // namespace
}  // namespace rankscope::gui
