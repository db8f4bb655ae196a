// SPDX-License-Identifier: Apache-2.0
#include "collector/store/page_rows.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "collector/store/error.h"

namespace rankscope::store {
namespace {

using Rows = std::vector<std::vector<std::optional<int64_t>>>;

const std::vector<std::string> kColumns{"start_ns", "rank", "correlation_id"};

// 6,000 rows on pages of 512 bytes, so that the tree has three levels: numbers of all lengths and signs, NULLs, words.
class PageRowsTest : public testing::Test {
  protected:
    PageRowsTest() {
        std::string pattern = (std::filesystem::temp_directory_path() / "rankscope-page-rows-XXXXXX").string();
        m_folder = mkdtemp(pattern.data());
        Database made(file(), OpenMode::create);
        made.execute(
            "PRAGMA page_size = 512; CREATE TABLE event (id INTEGER PRIMARY KEY, rank INTEGER, word TEXT, start_ns "
            "INTEGER, correlation_id INTEGER, note TEXT); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM "
            "n WHERE i < 6000) INSERT INTO event SELECT i, i % 3, CASE WHEN i % 5 = 0 THEN 'allreduce' END, CASE i % "
            "4 WHEN 0 THEN -1 ELSE 1 END * (1 << (i % 63)) - i % 2, CASE WHEN i % 7 > 0 THEN i END, 'behind' FROM n");
    }
    ~PageRowsTest() override { std::filesystem::remove_all(m_folder); }

    std::string file() const { return m_folder + "/rows.db"; }
    void change(const std::string& sql) const { Database(file(), OpenMode::readWrite).execute(sql); }

    static Rows all(PageRows& rows) {
        Rows found;
        while (rows.step()) {
            auto& row = found.emplace_back();
            for (int column = 0; column < static_cast<int>(kColumns.size()); ++column)
                row.push_back(rows.isNull(column) ? std::nullopt : std::optional(rows.integer(column)));
        }
        return found;
    }
    struct Reading {
        Rows rows;
        bool isRest;
    };
    Reading read(int64_t first = 1, int64_t last = 6'000) const {
        Database database(file(), OpenMode::readOnly);
        PageRows rows(database, "event", kColumns, first, last);
        Rows found = all(rows);
        return {std::move(found), rows.isRest()};
    }
    Rows bySqlite(int64_t first = 1, int64_t last = 6'000) const {
        Database database(file(), OpenMode::readOnly);
        Statement rows(database,
                       "SELECT start_ns, rank, correlation_id FROM event WHERE id BETWEEN ?1 AND ?2 ORDER BY id");
        rows.bind(1, first).bind(2, last);
        Rows found;
        while (rows.step()) {
            auto& row = found.emplace_back();
            for (int column = 0; column < 3; ++column)
                row.push_back(rows.isNull(column) ? std::nullopt : std::optional(rows.integer(column)));
        }
        return found;
    }

    std::string m_folder;
};

TEST_F(PageRowsTest, AreThoseThatSqliteReads) {
    for (const auto& [first, last] : {std::pair<int64_t, int64_t>{1, 6'000},
                                      {1, 1},
                                      {6'000, 6'000},
                                      {2'000, 4'000},
                                      {-5, 10},
                                      {5'990, 9'000},
                                      {6'001, 6'010},
                                      {10, 9},
                                      {INT64_MIN, INT64_MAX}}) {
        const Reading reading = read(first, last);
        EXPECT_EQ(reading.rows, bySqlite(first, last)) << first << " " << last;
        EXPECT_FALSE(reading.isRest) << first << " " << last;
    }
}

TEST_F(PageRowsTest, OfATableOfOnePageAndOfAnEmptyOne) {
    change("DELETE FROM event WHERE id BETWEEN 6 AND 6000");
    EXPECT_EQ(read().rows, bySqlite());
    EXPECT_EQ(read().rows.size(), 5u);
    EXPECT_FALSE(read().isRest);
    change("DELETE FROM event");
    EXPECT_TRUE(read().rows.empty());
}

TEST_F(PageRowsTest, GapsAreNoDamage) {
    change("DELETE FROM event WHERE id BETWEEN 1000 AND 3000 OR id % 11 = 0");
    EXPECT_EQ(read().rows, bySqlite());
    EXPECT_FALSE(read().isRest);
    EXPECT_EQ(read(2'000, 3'500).rows, bySqlite(2'000, 3'500));
}

// What is not an integer, is longer than a page, is not there or stands elsewhere.
TEST_F(PageRowsTest, SqliteReadsWhatPagesDoNotTell) {
    for (const char* sql :
         {"UPDATE event SET start_ns = 1.5 WHERE id = 3500", "UPDATE event SET start_ns = '17 ms' WHERE id = 3500",
          "UPDATE event SET rank = 'none' WHERE id = 1", "UPDATE event SET note = hex(zeroblob(5000)) WHERE id = 3500",
          "UPDATE event SET word = hex(zeroblob(100)) WHERE id = 3500",
          "ALTER TABLE event RENAME TO old; CREATE TABLE event (id INT, rank INTEGER, start_ns INTEGER, "
          "correlation_id INTEGER); INSERT INTO event SELECT id + 3, rank, start_ns, correlation_id FROM "
          "old",
          "DROP TABLE old; ALTER TABLE event DROP COLUMN correlation_id; ALTER TABLE event ADD COLUMN "
          "correlation_id INTEGER DEFAULT 12",
          "ALTER TABLE event RENAME TO base; CREATE TABLE event (id INTEGER PRIMARY KEY, rank INTEGER, "
          "start_ns INTEGER, correlation_id INTEGER) WITHOUT ROWID; INSERT INTO event SELECT id, rank, "
          "start_ns, correlation_id FROM base",
          "DROP TABLE event; CREATE VIEW event AS SELECT * FROM base"}) {
        change(sql);
        if (std::string(sql).find("VIEW") != std::string::npos) {  // nothing of a file is executed
            EXPECT_THROW(read(), Error);
            break;
        }
        EXPECT_EQ(read().rows, bySqlite()) << sql;
        EXPECT_TRUE(read().isRest) << sql;
        EXPECT_GT(read().rows.size(), 5'900u) << sql;
    }
}

TEST_F(PageRowsTest, AWriteAheadLogIsLeftToSqlite) {
    Database writer(file(), OpenMode::readWrite);
    writer.execute("PRAGMA journal_mode = WAL; UPDATE event SET rank = 9 WHERE id = 5");
    const Reading reading = read();
    EXPECT_TRUE(reading.isRest);
    EXPECT_EQ(reading.rows[4][1], 9);
}

TEST_F(PageRowsTest, NobodyWritesMeanwhile) {
    Database database(file(), OpenMode::readOnly), writer(file(), OpenMode::readWrite);
    writer.whenLocked([](std::chrono::milliseconds) { return false; });
    {
        PageRows rows(database, "event", kColumns, 1, 6'000);
        ASSERT_TRUE(rows.step());
        EXPECT_THROW(writer.execute("UPDATE event SET rank = 9"), LockedFile);
    }
    writer.execute("UPDATE event SET rank = 9");
    EXPECT_EQ(read().rows.front()[1], 9);
}

TEST_F(PageRowsTest, AColumnThatIsNotThereIsAnError) {
    Database database(file(), OpenMode::readOnly);
    PageRows rows(database, "event", {"rank", "no_such"}, 1, 10);
    EXPECT_THROW(rows.step(), Error);
}

// Whatever bytes are there: what is read ends, and stays within its pages (the sanitizers look).
TEST_F(PageRowsTest, DamagedPagesAreReadToAnEnd) {
    std::ifstream in(file(), std::ios::binary);
    const std::string sound{std::istreambuf_iterator<char>(in), {}};
    size_t different = 0;
    for (unsigned seed = 1; seed <= 60; ++seed) {
        std::mt19937 random(seed);
        std::string bytes = sound;
        // Beginnings of pages say what they are, and where their rows stand.
        for (int edit = 0; edit < 6; ++edit) {
            const size_t page = 1 + random() % (bytes.size() / 512 - 1);
            bytes[page * 512 + random() % (edit % 2 == 0 ? 24 : 512)] = static_cast<char>(random());
        }
        std::ofstream(file(), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        try {
            const Reading reading = read(1 + random() % 100, 6'000);
            EXPECT_LE(reading.rows.size(), 12'000u) << seed;
            different += reading.isRest;
        } catch (const Error&) {
            ++different;
        }
    }
    EXPECT_GT(different, 10u) << "the damage is seen";
}

}  // namespace
}  // namespace rankscope::store
