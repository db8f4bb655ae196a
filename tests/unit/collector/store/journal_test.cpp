// SPDX-License-Identifier: Apache-2.0
// What lies beside a database: the journal of a writer that was killed, and one that somebody made up.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "collector/store/error.h"
#include "collector/store/sqlite.h"

namespace rankscope::store {
namespace {

namespace fs = std::filesystem;

class StoreJournal : public testing::Test {
  protected:
    void SetUp() override {
        char pattern[] = "/tmp/rankscope-journal-XXXXXX";
        ASSERT_NE(mkdtemp(pattern), nullptr);
        m_folder = pattern;
        m_file = (m_folder / "trace.db").string();
        Database database(m_file, OpenMode::create);
        database.execute(
            "CREATE TABLE t (x); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5000) INSERT "
            "INTO t SELECT hex(zeroblob(100)) FROM c");
    }
    void TearDown() override { fs::remove_all(m_folder); }

    /// A writer dies in the middle of a change, when parts of it are in the file already.
    void killWriter() const {
        const pid_t child = fork();
        if (child == 0) {
            Database database(m_file, OpenMode::readWrite);
            database.execute("PRAGMA cache_size = 1; BEGIN; UPDATE t SET x = 'torn'");
            kill(getpid(), SIGKILL);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status));
        ASSERT_GT(fs::file_size(m_file + "-journal"), 0u);
    }

    fs::path m_folder;
    std::string m_file;
};

TEST_F(StoreJournal, WhatAKilledWriterLeftIsUndoneByWhoReadsNext) {
    killWriter();
    Database database(m_file, OpenMode::readOnly);
    EXPECT_EQ(database.integer("SELECT count(*) FROM t WHERE x = 'torn'"), 0);
    EXPECT_EQ(database.integer("SELECT count(*) FROM t"), 5000);
}

// SQLite deletes the file that several databases have in common when all that it speaks of is undone.
TEST_F(StoreJournal, OneThatNamesAnotherFileIsRefusedAndThatFileStays) {
    const std::string precious = (m_folder / "precious").string();
    std::ofstream(precious) << "a letter\n";
    killWriter();
    uint32_t sum = 0;
    for (const char c : precious) sum += static_cast<uint32_t>(c);
    const auto big = [](uint32_t word) {
        return std::string{static_cast<char>(word >> 24), static_cast<char>(word >> 16), static_cast<char>(word >> 8),
                           static_cast<char>(word)};
    };
    std::ofstream(m_file + "-journal", std::ios::binary | std::ios::app)
        << big(0) << precious << big(static_cast<uint32_t>(precious.size())) << big(sum)
        << std::string("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
    for (const OpenMode mode : {OpenMode::readOnly, OpenMode::readWrite}) {
        try {
            Database database(m_file, mode);
            database.integer("SELECT count(*) FROM t");
            FAIL() << "was opened";
        } catch (const DamagedFile& error) {
            EXPECT_NE(error.cause().find("the journal beside it is none of Rankscope's"), std::string::npos);
        }
        EXPECT_TRUE(fs::exists(precious));
    }
}

TEST_F(StoreJournal, OneThatIsALinkOrAPipeIsRefused) {
    const std::string journal = m_file + "-journal";
    fs::create_symlink("/dev/zero", journal);
    EXPECT_THROW(Database(m_file, OpenMode::readOnly), DamagedFile);
    fs::remove(journal);
    ASSERT_EQ(mkfifo(journal.c_str(), 0600), 0);
    EXPECT_THROW(Database(m_file, OpenMode::readOnly), DamagedFile);
}

}  // namespace
}  // namespace rankscope::store
