// SPDX-License-Identifier: Apache-2.0
#include "injector/record/string_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

using namespace rankscope::injector;

namespace {
uint64_t idOf(const std::string& text) {
    return stringId(text.data(), text.size());
}
}  // namespace

TEST(StringId, OnlyTheEmptyTextIsZero) {
    EXPECT_EQ(idOf(""), 0u);
    EXPECT_NE(idOf(std::string(1, '\0')), 0u);
}

TEST(StringId, TextsThatDifferAnywhereDifferInTheLowHalfToo) {
    std::set<uint32_t> low;
    size_t texts = 0;
    for (size_t length = 1; length <= 40; ++length)
        for (size_t position = 0; position < length; ++position) {
            std::string text(length, 'a');
            text[position] = 'b';
            low.insert(static_cast<uint32_t>(idOf(text)));
            ++texts;
        }
    EXPECT_EQ(low.size(), texts);
}

TEST(StringTable, KnowsWhatWasAdded) {
    const auto table = std::make_unique<StringTable>();
    EXPECT_FALSE(table->contains(7));
    table->add(7);
    table->add(7 + (1u << 16));  // the same slot
    EXPECT_TRUE(table->contains(7));
    EXPECT_TRUE(table->contains(7 + (1u << 16)));
    table->clear();
    EXPECT_FALSE(table->contains(7));
}

TEST(StringTable, WhenANeighbourhoodIsFullTextsCountAsNew) {
    const auto table = std::make_unique<StringTable>();
    for (uint64_t i = 1; i <= 40; ++i) table->add(i << 16);
    EXPECT_TRUE(table->contains(1u << 16));
    EXPECT_FALSE(table->contains(40ull << 16));
}
