// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/output_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <climits>
#include <sstream>
#include <thread>

namespace rankscope::text {
namespace {

namespace fs = std::filesystem;

class OutputFiles : public testing::Test {
  protected:
    OutputFiles() : m_folder(fs::temp_directory_path() / "rankscope-output-XXXXXX") {
        std::string name = m_folder.string();
        m_folder = mkdtemp(name.data());
    }
    ~OutputFiles() override { fs::remove_all(m_folder); }

    static std::string read(const fs::path& file) {
        std::ostringstream text;
        text << std::ifstream(file).rdbuf();
        return text.str();
    }
    size_t files() const {
        return static_cast<size_t>(std::distance(fs::directory_iterator(m_folder), fs::directory_iterator()));
    }

    fs::path m_folder;
};

TEST_F(OutputFiles, AReaderSeesTheOldFileUntilTheNewOneIsWhole) {
    writeOutputFile("old", m_folder / "report");
    OutputFile file(m_folder / "report");
    file.stream() << "new" << std::flush;
    EXPECT_EQ(read(m_folder / "report"), "old");
    file.commit();
    EXPECT_EQ(read(m_folder / "report"), "new");
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFiles, WhoMayReadAFileStaysAndNeighboursStayWhole) {
    writeOutputFile("old", m_folder / "report");
    writeOutputFile("mine", m_folder / "report.new");
    fs::permissions(m_folder / "report", fs::perms::owner_read | fs::perms::owner_write);
    writeOutputFile("new", m_folder / "report");
    EXPECT_EQ(fs::status(m_folder / "report").permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(read(m_folder / "report.new"), "mine");
}

TEST_F(OutputFiles, NothingIsLeftOfWhatWasGivenUp) {
    writeOutputFile("old", m_folder / "report");
    OutputFile(m_folder / "report").stream() << "half";
    EXPECT_EQ(read(m_folder / "report"), "old");
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFiles, APipeIsWrittenToAndStaysAPipe) {
    const fs::path pipe = m_folder / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    std::string got;
    std::thread reader([&] { got = read(pipe); });
    writeOutputFile("through", pipe);
    reader.join();
    EXPECT_EQ(got, "through");
    EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(OutputFiles, ANameMayBeAsLongAsTheSystemTakes) {
    const fs::path longest = m_folder / std::string(NAME_MAX, 'x'), longer = m_folder / std::string(NAME_MAX + 1, 'x');
    writeOutputFile("text", longest);
    EXPECT_EQ(read(longest), "text");
    EXPECT_THROW(writeOutputFile("text", longer), fs::filesystem_error);
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFiles, ALinkKeepsPointingToWhatItPointsTo) {
    writeOutputFile("old", m_folder / "target");
    fs::create_symlink("target", m_folder / "link");
    writeOutputFile("new", m_folder / "link");
    EXPECT_TRUE(fs::is_symlink(m_folder / "link"));
    EXPECT_EQ(read(m_folder / "target"), "new");
    fs::create_symlink("link", m_folder / "second");
    fs::remove(m_folder / "target");
    writeOutputFile("again", m_folder / "second");
    EXPECT_TRUE(fs::is_symlink(m_folder / "second"));
    EXPECT_EQ(read(m_folder / "target"), "again");
}

TEST_F(OutputFiles, WhatIsRemovedIsAFileAndNeverALinkOrAPipe) {
    writeOutputFile("text", m_folder / "target");
    fs::create_symlink("target", m_folder / "link");
    removeOutputFile(m_folder / "link");
    EXPECT_TRUE(fs::is_symlink(m_folder / "link"));
    EXPECT_FALSE(fs::exists(m_folder / "target"));
    ASSERT_EQ(mkfifo((m_folder / "pipe").c_str(), 0600), 0);
    fs::create_symlink("pipe", m_folder / "to-pipe");
    for (const char* name : {"pipe", "to-pipe", "missing"}) removeOutputFile(m_folder / name);
    EXPECT_TRUE(fs::is_fifo(m_folder / "pipe"));
    EXPECT_TRUE(fs::is_symlink(m_folder / "to-pipe"));
    removeOutputFile(m_folder);
    EXPECT_EQ(files(), 3u);
}

TEST_F(OutputFiles, WhatCannotBeWrittenIsNamedWithTheReason) {
    for (const fs::path& name : {m_folder / "missing" / "report", m_folder}) {
        try {
            writeOutputFile("text", name);
            FAIL() << name;
        } catch (const fs::filesystem_error& error) {
            EXPECT_EQ(error.path1(), name);
            EXPECT_TRUE(error.code() == std::errc::no_such_file_or_directory ||
                        error.code() == std::errc::is_a_directory)
                << error.what();
        }
    }
    EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace rankscope::text
