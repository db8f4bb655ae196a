// SPDX-License-Identifier: Apache-2.0
// Pickles as Python writes them, damaged ones, and ones that want something of their reader.
#include "collector/importers/pickle_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace rankscope::collector {
namespace {

using State = PickleResult::State;
using namespace std::string_literals;

/// The value as text: {a, [1, real], b, none}.
std::string shown(const DumpTree& tree, DumpNode node) {
    switch (tree.kind(node)) {
        case DumpTree::Kind::null:
            return "none";
        case DumpTree::Kind::boolean:
            return *tree.boolean(node) ? "true" : "false";
        case DumpTree::Kind::integer:
            return std::to_string(*tree.integer(node));
        case DumpTree::Kind::real:
            return "real";
        case DumpTree::Kind::text:
            return std::string(tree.text(node));
        default:
            break;
    }
    std::string text;
    for (const DumpNode child : tree.children(node)) text += (text.empty() ? "" : ", ") + shown(tree, child);
    return tree.isList(node) ? "[" + text + "]" : "{" + text + "}";
}

std::string valueOf(std::string_view pickle, State expected = State::whole) {
    DumpTree tree;
    const PickleResult result = readPickle(pickle, tree);
    EXPECT_EQ(result.state, expected) << result.problem;
    return result.root == DumpTree::kNone ? result.problem : shown(tree, result.root);
}

std::string problemOf(std::string_view pickle) {
    DumpTree tree;
    const PickleResult result = readPickle(pickle, tree);
    EXPECT_EQ(result.state, State::refused);
    EXPECT_EQ(result.root, DumpTree::kNone);
    return "offset " + std::to_string(result.offset) + ": " + result.problem;
}

// {'a': [1, -2, 70000, 2**40, -2**63, 2.5, None, True, False], 't': ('x',), 'n': {}, 's': ['x', 'x']}
const std::string kPickles[] = {
    "\x80\x02}q\x00(X\x01\x00\x00\x00\x61q\x01]q\x02(K\x01J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80G@\x04\x00\x00\x00\x00\x00\x00N\x88\x89\x65X\x01\x00\x00\x00tq\x03X\x01\x00\x00\x00xq\x04\x85q\x05X\x01\x00\x00\x00nq\x06}q\x07X\x01\x00\x00\x00sq\x08]q\x09(h\x04h\x04\x65u."s,
    "\x80\x03}q\x00(X\x01\x00\x00\x00\x61q\x01]q\x02(K\x01J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80G@\x04\x00\x00\x00\x00\x00\x00N\x88\x89\x65X\x01\x00\x00\x00tq\x03X\x01\x00\x00\x00xq\x04\x85q\x05X\x01\x00\x00\x00nq\x06}q\x07X\x01\x00\x00\x00sq\x08]q\x09(h\x04h\x04\x65u."s,
    "\x80\x04\x95S\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01\x61\x94]\x94(K\x01J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80G@\x04\x00\x00\x00\x00\x00\x00N\x88\x89\x65\x8c\x01t\x94\x8c\x01x\x94\x85\x94\x8c\x01n\x94}\x94\x8c\x01s\x94]\x94(h\x04h\x04\x65u."s,
    "\x80\x05\x95S\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01\x61\x94]\x94(K\x01J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80G@\x04\x00\x00\x00\x00\x00\x00N\x88\x89\x65\x8c\x01t\x94\x8c\x01x\x94\x85\x94\x8c\x01n\x94}\x94\x8c\x01s\x94]\x94(h\x04h\x04\x65u."s,
};
constexpr const char* kValue =
    "{a, [1, -2, 70000, 1099511627776, -9223372036854775808, real, none, true, false], t, [x], n, {}, s, [x, x]}";

TEST(PickleReader, ReadsWhatPythonWritesByProtocols2To5) {
    for (const std::string& pickle : kPickles) EXPECT_EQ(valueOf(pickle), kValue);
}

TEST(PickleReader, APickleCutAtAnyByteGivesWhatStandsInFrontOfTheCut) {
    for (const std::string& pickle : kPickles)
        for (size_t cut = 0; cut + 1 < pickle.size(); ++cut) {
            DumpTree tree;
            const PickleResult result = readPickle(std::string_view(pickle).substr(0, cut), tree);
            ASSERT_EQ(result.state, State::cut) << "cut at " << cut;
            if (result.root != DumpTree::kNone) {
                ASSERT_TRUE(tree.isDictionary(result.root));
                ASSERT_EQ(tree.children(result.root).size() % 2, 0u);
            }
        }
    EXPECT_EQ(valueOf("\x80\x02}(X\x01\0\0\0a](K\x01K\x02"s, State::cut), "{a, [1, 2]}");
}

TEST(PickleReader, AnyByteChangedNeverBreaksTheReader) {
    for (const std::string& pickle : kPickles)
        for (size_t at = 0; at < pickle.size(); ++at)
            for (int value = 0; value < 256; ++value) {
                std::string damaged = pickle;
                damaged[at] = static_cast<char>(value);
                DumpTree tree;
                const PickleResult result = readPickle(damaged, tree);
                ASSERT_EQ(result.problem.empty(), result.state == State::whole) << at << " is " << value;
                if (result.state == State::refused) {
                    ASSERT_EQ(result.root, DumpTree::kNone) << at << " is " << value;
                }
            }
}

TEST(PickleReader, WhatNamesOrCallsSomethingIsRefusedWithItsNameAndOffset) {
    EXPECT_EQ(problemOf("\x80\x02"
                        "cos\nsystem\nX\x02\0\0\0ls\x85R."s),
              "offset 2: it holds the opcode GLOBAL os.system, which no dump of data needs; nothing was run");
    EXPECT_NE(problemOf("\x80\x04\x8c\x02os\x8c\x06system\x93."s)
                  .find("offset 14: it holds the opcode STACK_GLOBAL os.system"),
              std::string::npos);
    const std::pair<std::string, const char*> opcodes[] = {
        {"K\x01R", "REDUCE"},
        {"K\x01"
         "b",
         "BUILD"},
        {"(ios\nsystem\n", "INST os.system"},
        {"(o", "OBJ"},
        {"\x81", "NEWOBJ"},
        {"\x92", "NEWOBJ_EX"},
        {"P1\n", "PERSID"},
        {"Q", "BINPERSID"},
        {"\x82\x01", "EXT1"},
        {"\x97", "NEXT_BUFFER"},
    };
    for (const auto& [bytes, name] : opcodes)
        EXPECT_NE(problemOf("\x80\x04" + bytes + ".").find("the opcode "s + name), std::string::npos) << name;
    EXPECT_EQ(problemOf("\x80\x02\xff."s), "offset 2: byte 0xff is no opcode");
    EXPECT_EQ(problemOf("\x80\x09N."s), "offset 0: its protocol is 9; 2 to 5 are known");
}

TEST(PickleReader, StacksAndMemosOfNothingAreRefused) {
    for (const std::string& bytes : {"a"s, "e"s, "s"s, "u"s, "(u"s, "\x85"s, "q\x01"s, "h\x05"s, "0"s, "1"s, "2"s, "t"s,
                                     "."s, "NN."s, "}(K\x01u."s, "N(Ne."s, "NNa."s, "(]e"s, "(."s}) {
        DumpTree tree;
        EXPECT_EQ(readPickle("\x80\x02" + bytes, tree).state, State::refused) << bytes;
    }
}

TEST(PickleReader, HugeLengthsAndIndicesCostNothing) {
    EXPECT_EQ(valueOf("\x80\x02X\xff\xff\xff\xff"s, State::cut), "it ends inside a text of 4294967295 bytes");
    EXPECT_EQ(valueOf("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f"s, State::cut),
              "it ends inside a text of 9223372036854775807 bytes");
    EXPECT_NE(problemOf("\x80\x02Nr\xff\xff\xff\xff."s).find("remembers a value as number 4294967295"),
              std::string::npos);
    EXPECT_NE(problemOf("\x80\x02j\xff\xff\xff\xff."s).find("never remembered"), std::string::npos);
}

TEST(PickleReader, NestingIsBoundedByTheFileAlone) {
    // A list in a list, a million deep: neither the reader nor the tree recurses.
    std::string deep = "\x80\x02"s;
    for (int i = 0; i < 1'000'000; ++i) deep += "](";
    DumpTree tree;
    EXPECT_EQ(readPickle(deep, tree).state, State::cut);
    std::string whole = "\x80\x02]"s;
    for (int i = 0; i < 1'000'000; ++i) whole += "]a";  // an empty list into the one below
    DumpTree flat;
    EXPECT_EQ(readPickle(whole + ".", flat).state, State::whole);
}

TEST(PickleReader, AMemoThatDoublesItselfIsSharedAndNotUnfolded) {
    // Forty lists, each of two of the one before: 2^40 values for whoever copies.
    std::string bomb = "\x80\x02]q\x00"s;
    for (char i = 0; i < 40; ++i) bomb += "]q"s + static_cast<char>(i + 1) + "(h" + i + "h" + i + "e";
    DumpTree tree;
    const PickleResult result = readPickle(bomb + "0"s + std::string(39, '0') + ".", tree);
    EXPECT_EQ(result.state, State::whole) << result.problem;
    // A list that holds itself.
    DumpTree knot;
    const PickleResult self = readPickle(
        "\x80\x02]q\x00h\x00"
        "a."s,
        knot);
    ASSERT_EQ(self.state, State::whole);
    EXPECT_EQ(knot.children(self.root).front(), self.root);
}

}  // namespace
}  // namespace rankscope::collector
