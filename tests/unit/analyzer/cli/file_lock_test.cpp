// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <system_error>
namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kBriefly{20};

std::system_error failureOf(const fs::path& file) {
    try {
        LockedFile lock(file, kBriefly);
    } catch (const std::system_error& error) {
        return error;
    }
    return std::system_error(std::error_code{}, "locked");
}

class FileLock : public testing::Test {
  protected:
    void SetUp() override {
        char pattern[] = "/tmp/rankscope-lock-XXXXXX";
        ASSERT_NE(mkdtemp(pattern), nullptr);
        m_folder = pattern;
        m_file = m_folder / ".members";
    }
    void TearDown() override { fs::remove_all(m_folder); }

    fs::path m_folder, m_file;
};

TEST_F(FileLock, IsForItsOwnerAloneWhateverTheUmask) {
    const mode_t before = umask(0);
    LockedFile lock(m_file, kBriefly);
    umask(before);
    struct stat info {};
    ASSERT_EQ(stat(m_file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST_F(FileLock, WhoHoldsItTooLongIsNamed) {
    const LockedFile held(m_file, kBriefly);
    const std::system_error failure = failureOf(m_file);
    EXPECT_EQ(failure.code(), std::errc::timed_out);
    EXPECT_NE(std::string(failure.what()).find("held by pid " + std::to_string(getpid())), std::string::npos)
        << failure.what();
}

TEST_F(FileLock, IsFreeAgainWhenItsHolderIsGone) {
    { const LockedFile held(m_file, kBriefly); }
    EXPECT_EQ(failureOf(m_file).code(), std::error_code{});
}

TEST_F(FileLock, IsNotFollowedThroughALinkNorTakenFromAPipe) {
    const fs::path victim = m_folder / "victim";
    std::ofstream(victim) << "precious";
    fs::create_symlink(victim, m_file);
    EXPECT_EQ(failureOf(m_file).code(), std::errc::too_many_symbolic_link_levels);
    fs::remove(m_file);
    ASSERT_EQ(mkfifo(m_file.c_str(), 0600), 0);
    EXPECT_EQ(failureOf(m_file).code(), std::errc::operation_not_permitted);
    EXPECT_EQ(fs::file_size(victim), 8u);
}

}  // namespace
}  // namespace rankscope::cli
