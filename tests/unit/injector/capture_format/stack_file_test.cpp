// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/stack_file.h"

#include <gtest/gtest.h>

namespace rankscope::capture {
namespace {

StackFile example() {
    StackFile file{
        .rank = 3, .host = "node 1", .pid = 47, .capture = "node1.47.8.cap", .readUnixNs = 9, .stalledNs = 5};
    file.notes = {"no Python stacks: py-spy is not on PATH"};
    file.captureBytes = 8192;
    file.progress = 0;
    file.threads = {{ThreadStack::Language::native, 47, 'S', "python3 a", {"read+0x1 (libc.so.6)", "0x5 (x)"}},
                    {ThreadStack::Language::native, 48, 'D', "", {}},
                    {ThreadStack::Language::python, 47, '?', "MainThread", {"f (a b.py:3)"}}};
    return file;
}

TEST(StackFile, WhatIsWrittenIsRead) {
    const auto read = parseStackFile(formatStackFile(example()));
    ASSERT_TRUE(read);
    EXPECT_EQ(formatStackFile(*read), formatStackFile(example()));
    EXPECT_TRUE(read->isWhole);
    ASSERT_EQ(read->threads.size(), 3u);
    EXPECT_EQ(read->threads[0].frames.size(), 2u);
    EXPECT_EQ(read->threads[1].state, 'D');
    EXPECT_EQ(read->captureBytes, 8192);
    EXPECT_EQ(read->progress, 0u);
    EXPECT_EQ(read->threads[2].language, ThreadStack::Language::python);
    EXPECT_EQ(read->threads[2].name, "MainThread");
}

TEST(StackFile, ANameWithALineBreakMakesNoLine) {
    StackFile file = example();
    file.threads[0].name = "a\nthread 5 R b";
    file.threads[0].frames[0] = "f\n\nend\n";
    const auto read = parseStackFile(formatStackFile(file));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->threads.size(), 3u);
    EXPECT_EQ(read->threads[0].name, "a?thread 5 R b");
    EXPECT_EQ(read->threads[0].frames[0], "f??end?");
}

TEST(StackFile, AFileCutAnywhereGivesItsBeginningAndSaysSo) {
    const std::string whole = formatStackFile(example());
    for (size_t bytes = 0; bytes + 2 < whole.size(); ++bytes) {
        const auto read = parseStackFile(std::string_view(whole).substr(0, bytes));
        if (bytes < std::string_view("rankscope stacks 1").size()) {
            EXPECT_FALSE(read);
            continue;
        }
        ASSERT_TRUE(read) << bytes;
        EXPECT_FALSE(read->isWhole) << bytes;
        EXPECT_LE(read->threads.size(), 3u);
    }
    EXPECT_FALSE(parseStackFile("rankscope stacks 2\n"));
}

TEST(StackFile, WhatIsBeyondAnyProcessIsLeftOut) {
    std::string text = "rankscope stacks 1\nthread 1 S a\n";
    for (size_t i = 0; i < 2 * kMostFrames; ++i) text += "  f\n";
    for (size_t i = 0; i < 2 * kMostThreads; ++i) text += "thread x\n";
    const auto read = parseStackFile(text);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->threads.size(), kMostThreads);
    EXPECT_EQ(read->threads[0].frames.size(), kMostFrames);
    EXPECT_EQ(read->threads[1].tid, 0);
}

}  // namespace
}  // namespace rankscope::capture
