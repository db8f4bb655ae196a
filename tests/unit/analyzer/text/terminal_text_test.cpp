// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/terminal_text.h"

#include <gtest/gtest.h>

#include <string>

namespace rankscope::text {
namespace {

const std::string kMark = "\xEF\xBF\xBD";

TEST(TerminalText, KeepsTheShadesOfAPainterWhereThereIsColour) {
    const std::string shaded = Painter(true)(Shade::boldRed, "error: ") + "x\n";
    EXPECT_EQ(terminalText(shaded, true), shaded);
    EXPECT_EQ(terminalText(shaded, false), kMark + "[1;31merror: " + kMark + "[0mx\n");
}

TEST(TerminalText, LetsNothingElseSteerTheTerminal) {
    // Title, clipboard, clearing, cursor, a cut sequence, C1 controls in UTF-8 and as bytes, the bell.
    for (const std::string text : {"\x1b]0;X\x07", "\x1b]52;c;YQ==\x07", "\x1b[2J", "\x1b[5A", "\x1b[1;3", "\x1b",
                                   "\xC2\x9B\x32J", "\x9B\x32J", "\r\x08\x7f"}) {
        for (const bool colour : {false, true}) {
            const std::string shown = terminalText("a" + text + "b", colour);
            for (const char c : shown) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << text;
            EXPECT_EQ(shown.find("\xC2\x9B"), std::string::npos);
            EXPECT_TRUE(shown.starts_with("a") && shown.ends_with("b"));
        }
    }
}

TEST(TerminalText, LeavesTextOfAnyLanguageAsItIs) {
    const std::string text = "r\xC3\xA9sum\xC3\xA9\t\xE4\xB8\xAD\n";
    EXPECT_EQ(terminalText(text, true), text);
    EXPECT_EQ(terminalText("", true), "");
}

TEST(TerminalText, CommandsStayOnALine) {
    const std::string text = "look at rank 3: nvidia-smi -q -d CLOCK,POWER (throttling, a neighbour's process)";
    EXPECT_EQ(
        withPlainSpaces(wrapped(withUnbrokenCommands(text), "  fix  ", 44)),
        "  fix  look at rank 3:\n       nvidia-smi -q -d CLOCK,POWER\n       (throttling, a neighbour's process)\n");
    EXPECT_EQ(withPlainSpaces(withUnbrokenCommands(text)), text);
    EXPECT_EQ(withUnbrokenCommands("a - b, the -1 of it"), "a - b, the -1 of it") << "a dash is no option";
}

TEST(TerminalText, ANumberAndItsUnitStandOnOneLine) {
    EXPECT_EQ(wrapped("waiting 86.1 ms, transfer", "", 14), "waiting\n86.1 ms,\ntransfer\n");
    EXPECT_EQ(wrapped("11.2 of 80.0 GB/s (17 %) in", "", 10), "11.2 of\n80.0 GB/s\n(17 %) in\n");
    EXPECT_EQ(wrapped("rank 5 starts", "", 7), "rank 5\nstarts\n") << "a word that is no unit";
    EXPECT_EQ(wrapped("100 %", "", 4), "100 %\n") << "as a word that is longer";
}

}  // namespace
}  // namespace rankscope::text
