// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/output_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace rankscope::text {
namespace {

namespace fs = std::filesystem;

class OutputFolders : public testing::Test {
  protected:
    OutputFolders() : m_folder(fs::temp_directory_path() / "rankscope-folders-XXXXXX") {
        std::string name = m_folder.string();
        m_folder = mkdtemp(name.data());
    }
    ~OutputFolders() override { fs::remove_all(m_folder); }

    static size_t entries(const fs::path& folder) {
        return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
    }

    fs::path m_folder;
};

TEST_F(OutputFolders, ANewOneIsSeenWhenItIsWhole) {
    OutputFolder folder(m_folder / "a/b");
    std::ofstream(folder.place() / "one") << "1";
    EXPECT_FALSE(fs::exists(m_folder / "a/b"));
    std::ofstream(folder.place() / "two") << "2";
    folder.commit();
    EXPECT_EQ(entries(m_folder / "a/b"), 2u);
    EXPECT_EQ(entries(m_folder / "a"), 1u);
}

TEST_F(OutputFolders, OneThatWasNotFinishedLeavesNothing) {
    fs::create_directory(m_folder / "empty");
    for (const char* name : {"new", "empty", "ends with/"}) {
        OutputFolder folder(m_folder / name);
        std::ofstream(folder.place() / "one") << "1";
    }
    EXPECT_EQ(entries(m_folder), 1u);
    EXPECT_EQ(entries(m_folder / "empty"), 0u);
}

TEST_F(OutputFolders, OneThatIsThereIsFilledWhereItIs) {
    fs::create_directory(m_folder / "empty");
    fs::permissions(m_folder / "empty", fs::perms::owner_all);
    OutputFolder folder(m_folder / "empty/");
    std::ofstream(folder.place() / "one") << "1";
    folder.commit();
    EXPECT_EQ(entries(m_folder / "empty"), 1u);
    EXPECT_EQ(fs::status(m_folder / "empty").permissions(), fs::perms::owner_all);
}

TEST_F(OutputFolders, WhatCannotBeMadeIsAnErrorWithItsName) {
    std::ofstream(m_folder / "file") << "";
    EXPECT_THROW(OutputFolder(m_folder / "file/below"), fs::filesystem_error);
}

}  // namespace
}  // namespace rankscope::text
