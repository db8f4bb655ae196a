// SPDX-License-Identifier: Apache-2.0
// A small dump of a flight recorder as a pickle, with every byte damaged and cut at every byte: the importer never
// crashes, hangs or runs anything, and a file of which something is missing says so.
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "collector/importers/flight_dump.h"
#include "collector/importers/flight_rank.h"
#include "collector/importers/import_error.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

/// Writes what PyTorch's pickler does: texts by BINUNICODE, each remembered.
class Pickle {
  public:
    Pickle& raw(std::string_view bytes) {
        m_bytes += bytes;
        return *this;
    }
    Pickle& text(std::string_view text) {
        m_bytes += 'X';
        for (int i = 0; i < 4; ++i) m_bytes += static_cast<char>(text.size() >> (8 * i));
        m_bytes += text;
        m_bytes += 'q';
        m_bytes += static_cast<char>(m_next++);
        return *this;
    }
    Pickle& number(char value) {
        m_bytes += 'K';
        m_bytes += value;
        return *this;
    }
    const std::string& bytes() const { return m_bytes; }

  private:
    std::string m_bytes = "\x80\x02";
    uint8_t m_next = 0;
};

std::string smallDump() {
    Pickle pickle;
    pickle.raw("}(")
        .text("version")
        .text("2.10")
        .text("pg_config")
        .raw("}(")
        .text("0")
        .raw("}(")
        .text("desc")
        .text("world");
    pickle.text("ranks").text("[0, 1]").raw("uu").text("entries").raw("](");
    for (char id = 0; id < 3; ++id) {
        pickle.raw("}(").text("record_id").number(id).text("process_group").text("0").text("world").raw("\x86");
        pickle.text("collective_seq_id")
            .number(static_cast<char>(id + 1))
            .text("profiling_name")
            .text("nccl:all_reduce");
        pickle.text("input_sizes").raw("](](").number(4).raw("ee").text("state").text("completed").raw("u");
    }
    return pickle.raw("eu.").bytes();
}

/// Calls read; -1 where it was refused.
int64_t callsOf(const tests::TraceFolder& folder, const std::string& bytes, bool& whole) {
    whole = false;
    try {
        ImportLosses losses;
        const FlightDump dump = readFlightDump(folder.write("_dump_1", bytes), losses);
        whole = losses.all().empty();
        const FileRank rank = rankFromDump(dump, rankOfDump(dump, "_dump_1"));
        EXPECT_LE(rank.recording.ncclCalls.size(), dump.entries.size());
        return static_cast<int64_t>(dump.entries.size());
    } catch (const ImportError&) {
        return -1;
    }
}

TEST(FlightDamage, ADumpCutAtAnyByteGivesWhatStandsInFrontOfTheCut) {
    const tests::TraceFolder folder;
    const std::string dump = smallDump();
    bool whole = false;
    ASSERT_EQ(callsOf(folder, dump, whole), 3);
    ASSERT_TRUE(whole);
    int64_t before = -1;
    for (size_t cut = 3; cut < dump.size(); ++cut) {
        const int64_t calls = callsOf(folder, dump.substr(0, cut), whole);
        ASSERT_GE(calls, before) << "a longer file gave less at " << cut;
        ASSERT_FALSE(whole) << cut;
        before = calls;
    }
    EXPECT_EQ(before, 3);
}

TEST(FlightDamage, AnyByteChangedIsReadOrRefused) {
    const tests::TraceFolder folder;
    const std::string dump = smallDump();
    for (size_t at = 2; at < dump.size(); ++at)
        for (const int value : std::initializer_list<int>{0, 1, '(', '.', 'R', 'c', 'h', '}', 0x80, 0x93, 0xff,
                                                          dump[at] ^ 1, dump[at] ^ 0x40}) {
            std::string damaged = dump;
            damaged[at] = static_cast<char>(value);
            bool whole = false;
            ASSERT_LE(callsOf(folder, damaged, whole), 3) << at << " is " << value;
        }
}

}  // namespace
}  // namespace rankscope::collector
