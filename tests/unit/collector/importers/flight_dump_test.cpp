// SPDX-License-Identifier: Apache-2.0
// Dumps of PyTorch's flight recorder, one by one and several together. They are written as JSON here, which is in
// sight; that the pickle says the same is pickle_reader_test's and, with Python's own pickler,
// tests/golden/flight_recorder_test.py's.
#include "collector/importers/flight_dump.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collector/importers/import.h"
#include "collector/importers/import_error.h"
#include "collector/store/sqlite.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using store::Database;
using store::OpenMode;
using tests::TraceFolder;
using namespace std::string_literals;

/// A call; `more` overrides or adds fields (the last of a name counts).
std::string entry(int id, const std::string& group, int seq, const std::string& name, const std::string& state,
                  const std::string& more = "") {
    return R"({"record_id": )" + std::to_string(id) + R"(, "pg_id": 0, "process_group": [")" + group +
           R"(", "TP"], "collective_seq_id": )" + std::to_string(seq) +
           R"(, "p2p_seq_id": 0, "op_id": 1, "profiling_name": "nccl:)" + name + R"(", "time_created_ns": )" +
           std::to_string(1'758'000'000'000'000'000 + id * 1000) +
           R"(, "input_sizes": [[2, 8]], "input_dtypes": ["Float"], "output_sizes": [[2, 8]], "output_dtypes": ["Float"], "state": ")" +
           state + R"(", "time_discovered_started_ns": null, "time_discovered_completed_ns": 0, "is_p2p": false)" +
           more + "}";
}

std::string groupsOf(const std::string& name, const std::string& ranks) {
    return "\"" + name + R"(": {"name": ")" + name + R"(", "desc": "TP", "ranks": ")" + ranks + "\"}";
}

std::string dump(const std::string& groups, const std::vector<std::string>& entries, const std::string& more = "") {
    std::string text =
        R"({"version": "2.9", "pg_config": {)" + groups + R"(}, "nccl_version": "2.27.3")" + more + R"(, "entries": [)";
    for (size_t i = 0; i < entries.size(); ++i) text += (i > 0 ? ", " : "") + entries[i];
    return text + "]}";
}

class FlightDumps : public testing::Test {
  protected:
    FlightDump read(const std::string& text) {
        m_losses = {};
        return readFlightDump(m_folder.write("dump", text), m_losses);
    }
    std::string errorOf(const std::string& text) {
        try {
            read(text);
        } catch (const ImportError& error) {
            return error.what();
        }
        return "";
    }
    Database import(const std::vector<std::string>& dumps) {
        std::vector<std::filesystem::path> files;
        for (size_t rank = 0; rank < dumps.size(); ++rank)
            if (!dumps[rank].empty()) files.push_back(m_folder.write("_dump_" + std::to_string(rank), dumps[rank]));
        importRun(files, m_folder / "run");
        return Database((m_folder / "run/trace.db").string(), OpenMode::readOnly);
    }

    TraceFolder m_folder;
    ImportLosses m_losses;
};

TEST_F(FlightDumps, ADumpTellsGroupsCallsAndHowFarTheyGot) {
    const FlightDump told = read(dump(
        groupsOf("7", "[4, 9]"),
        {entry(0, "7", 1, "all_reduce", "completed",
               R"(, "timeout_ms": 600000, "frames": [{"name": "all_reduce", "filename": "/x/torch/d.py", "line": 3},
                            {"name": "step", "filename": "/job/train.py", "line": 40}])"),
         entry(1, "7", 1, "send 1->0", "scheduled", R"(, "is_p2p": true, "p2p_seq_id": 1)")}));
    ASSERT_EQ(told.groups.size(), 1u);
    EXPECT_EQ(told.groups[0].ranks, (std::vector<int32_t>{4, 9}));
    EXPECT_TRUE(told.knowsGroups && told.isWhole && told.fromStart);
    ASSERT_EQ(told.entries.size(), 2u);
    EXPECT_EQ(told.entries[0].state, FlightState::completed);
    EXPECT_EQ(told.entries[0].inElements, 16);
    EXPECT_EQ(told.entries[0].timeoutNs, 600'000'000'000);
    EXPECT_EQ(told.entries[0].place, "step (/job/train.py:40)");
    EXPECT_FALSE(told.entries[0].completedNs.has_value());  // 0 in JSON
    EXPECT_TRUE(told.entries[1].isMessage);
    EXPECT_EQ(told.entries[1].peer, 0);
    EXPECT_EQ(rankOfDump(told, "whatever_3"), 9);  // its message says so
}

TEST_F(FlightDumps, TheRankIsInTheNameOfTheFileUnlessItIsNoMember) {
    const FlightDump told = read(dump(groupsOf("0", "[0, 1, 12]") + ", " + groupsOf("5", "[1, 12]"), {}));
    EXPECT_EQ(rankOfDump(told, "nccl_trace_rank_12"), 12);
    EXPECT_EQ(rankOfDump(told, "_dump_1.json.gz"), 1);
    EXPECT_EQ(rankOfDump(told, "_dump_0"), std::nullopt);  // not a member of 5
    EXPECT_EQ(rankOfDump(told, "dump"), std::nullopt);
    EXPECT_EQ(rankOfDump(told, "rank1_attempt12.pkl"), 1);            // not the last number
    EXPECT_EQ(rankOfDump(told, "rank3_attempt1.pkl"), std::nullopt);  // no member, whatever else the name holds
    EXPECT_EQ(rankOfDump(read(dump("", {})), "rank0_20240501.pkl"), 0);
    EXPECT_EQ(rankOfDump(read(dump(groupsOf("0", "[0, 1]") + ", " + groupsOf("5", "[1]"), {})), "dump"), 1);
}

TEST_F(FlightDumps, CountersOfGroupsAreFoundByTheOrderOfTheirNumbersWhereCallsAgree) {
    const std::string groups = groupsOf("0", "[0, 1]") + ", " + groupsOf("40", "[1]") + ", " + groupsOf("7", "[0, 1]");
    const std::string status =
        R"(, "pg_status": {"0": {"last_enqueued_collective": "5", "last_completed_collective": "-1"}, "4": {"last_enqueued_collective": 8},
           "12": {"last_enqueued_collective": 9}})";
    const FlightDump told =
        read(dump(groups, {entry(0, "7", 8, "all_reduce", "scheduled", R"(, "pg_id": 4)")}, status));
    ASSERT_EQ(told.groups.size(), 3u);
    EXPECT_EQ(told.groups[0].lastEnqueued, 5);
    EXPECT_EQ(told.groups[0].lastCompleted, std::nullopt);
    EXPECT_EQ(told.groups[1].lastEnqueued, 9);  // "40" was made last
    EXPECT_EQ(told.groups[2].lastEnqueued, 8);
    // A call that contradicts the order: only what calls tell is taken.
    const FlightDump odd =
        read(dump(groups, {entry(0, "40", 8, "all_reduce", "scheduled", R"(, "pg_id": 4)")}, status));
    EXPECT_EQ(odd.groups[0].lastEnqueued, std::nullopt);
    EXPECT_EQ(odd.groups[1].lastEnqueued, 8);
}

TEST_F(FlightDumps, ADumpCutAtAnyByteGivesTheCallsInFrontOfTheCutOrSaysWhyNot) {
    std::vector<std::string> entries;
    for (int id = 0; id < 4; ++id) entries.push_back(entry(id, "0", id + 1, "all_reduce", "completed"));
    const std::string whole = dump(groupsOf("0", "[0, 1]"), entries);
    size_t before = 0;
    for (size_t cut = 1; cut < whole.size(); ++cut) {
        FlightDump told;
        try {
            told = read(whole.substr(0, cut));
        } catch (const ImportError&) {
            ASSERT_EQ(before, 0u) << "a longer file gave less at " << cut;
            continue;
        }
        ASSERT_FALSE(told.isWhole) << cut;
        ASSERT_GE(told.entries.size(), before) << cut;
        before = told.entries.size();
        ASSERT_EQ(m_losses.all().front().kind, "torn_tail");
    }
    EXPECT_EQ(before, 4u);
}

TEST_F(FlightDumps, WhatIsNoDumpIsRefused) {
    EXPECT_NE(errorOf(R"({"version": "2.9", "pg_status": {}})").find("neither calls"), std::string::npos);
    EXPECT_NE(errorOf(R"("pg_config")").find("holds no dictionary"), std::string::npos);
    EXPECT_NE(errorOf(std::string("\x80\x02") + "cos\nsystem\n.")
                  .find("offset 2: this pickle is not read: it holds the opcode GLOBAL os.system"),
              std::string::npos);
    // A thousand calls that are one call of a thousand shapes, over and over.
    std::string bomb = "\x80\x02}(X\x07\0\0\0entries](}q\x01(X\x0b\0\0\0input_sizes]("s;
    bomb += std::string(20'000, ']') + "e";
    bomb += "X\x0e\0\0\0profiling_nameX\x06\0\0\0nccl:xX\x05\0\0\0stateX\x01\0\0\0sX\x06\0\0\0seq_idK\x01u"s;
    for (int i = 0; i < 200'000; ++i) bomb += "h\x01";
    bomb += "eu.";
    EXPECT_NE(errorOf(bomb).find("unfolds to far more than its size"), std::string::npos) << errorOf(bomb);
}

TEST_F(FlightDumps, ABatchIsOneCallOfCollectivesAndAGroupOfMessages) {
    const auto message = [](int id, const std::string& name) {
        return entry(id, "0", 2, name, "scheduled", R"(, "is_p2p": true, "p2p_seq_id": 1)");
    };
    const std::string none = R"(, "input_sizes": [], "output_sizes": [])";
    Database trace = import({dump(
        groupsOf("0", "[0, 1]"),
        {entry(0, "0", 1, "_reduce_scatter_base", "scheduled"), entry(1, "0", 1, "_reduce_scatter_base", "scheduled"),
         entry(2, "0", 1, "REDUCE_SCATTER_coalesced", "completed", none), message(3, "send 0->1"),
         message(4, "recv 0<-1"),
         entry(5, "0", 2, "coalesced", "started", none + R"(, "is_p2p": true, "p2p_seq_id": 1)")})});
    EXPECT_EQ(trace.integer("SELECT count(*) FROM nccl_call"), 3);
    EXPECT_EQ(trace.integer("SELECT bytes FROM nccl_call WHERE op = 'reduce_scatter' AND seq = 1"), 128);
    EXPECT_EQ(trace.integer("SELECT count(*) FROM nccl_call c JOIN recorder_call r ON r.call_id = c.id WHERE c.op = "
                            "'reduce_scatter' AND "
                            "r.state = 'completed'"),
              1);
    EXPECT_EQ(
        trace.integer("SELECT count(DISTINCT group_id) FROM nccl_call c JOIN recorder_call r ON r.call_id = c.id WHERE "
                      "c.op IN ('send', 'recv') AND r.state = 'started'"),
        1);
}

TEST_F(FlightDumps, OfABatchThatTheRingHasCutTheSizeIsNotKnown) {
    std::vector<std::string> calls;
    for (int id = 5; id < 8; ++id) calls.push_back(entry(id, "0", 3, "_reduce_scatter_base", "completed"));
    calls.push_back(entry(8, "0", 4, "all_reduce", "completed"));
    Database trace = import({dump(groupsOf("0", "[0, 1]"), calls)});
    EXPECT_EQ(trace.integer("SELECT count(*) FROM nccl_call WHERE seq = 3 AND bytes IS NULL"), 1);
    EXPECT_EQ(trace.integer("SELECT count(*) FROM nccl_call WHERE seq = 4 AND bytes = 64"), 1);
}

TEST_F(FlightDumps, MoreMembersOfGroupsThanAnyJobHasAreRefused) {
    std::string groups, ranks = "0";
    for (int rank = 1; rank < 3000; ++rank) ranks += ", " + std::to_string(rank);
    for (int group = 0; group < 1500; ++group)
        groups += (group > 0 ? ", " : "") + groupsOf(std::to_string(group), "[" + ranks + "]");
    EXPECT_NE(errorOf(dump(groups, {})).find("unfolds to far more"), std::string::npos);
}

TEST_F(FlightDumps, ANegativeNumberIsNoCallAndIsSaid) {
    const FlightDump told = read(dump(groupsOf("0", "[0, 1]"), {entry(0, "0", -1, "all_reduce", "scheduled"),
                                                                entry(1, "0", 1, "all_reduce", "scheduled")}));
    EXPECT_EQ(told.entries.size(), 1u);
    EXPECT_FALSE(m_losses.all().empty());
}

TEST_F(FlightDumps, CallsOfBatchesWhoseEndWasLeftOutHaveEnded) {
    // A dump of what is active: of batches, whose calls never change their state, the end is left out when it ended.
    const auto message = [](int id, int seq, const std::string& name, const std::string& state) {
        return entry(id, "0", 0, name, state, R"(, "is_p2p": true, "p2p_seq_id": )" + std::to_string(seq));
    };
    Database trace = import({dump(groupsOf("0", "[0, 1]"),
                                  {message(0, 1, "send 0->1", "scheduled"), message(2, 2, "send 0->1", "scheduled"),
                                   message(3, 2, "coalesced", "started")})});
    EXPECT_EQ(
        trace.integer(
            "SELECT count(*) FROM nccl_call c JOIN recorder_call r ON r.call_id = c.id WHERE r.state = 'completed'"),
        1);
    EXPECT_EQ(
        trace.integer(
            "SELECT count(*) FROM nccl_call c JOIN recorder_call r ON r.call_id = c.id WHERE r.state = 'started'"),
        1);
}

TEST_F(FlightDumps, MessagesAreNumberedFromTheFirstThatHasNotEndedWhereRingsHaveDroppedSome) {
    const auto message = [](int id, const std::string& name, const std::string& state) {
        return entry(id, "0", 2, name, state, R"(, "is_p2p": true, "p2p_seq_id": )" + std::to_string(id));
    };
    // Rank 0 still has two sends that ended, rank 1 three receives; the send on its way belongs to the open receive.
    Database trace = import(
        {dump(groupsOf("0", "[0, 1]"), {message(50, "send 0->1", "completed"), message(51, "send 0->1", "completed"),
                                        message(52, "send 0->1", "scheduled")}),
         dump(groupsOf("0", "[0, 1]"),
              {message(30, "recv 1<-0", "completed"), message(31, "recv 1<-0", "completed"),
               message(32, "recv 1<-0", "completed"), message(33, "recv 1<-0", "scheduled")})});
    EXPECT_EQ(trace.integer("SELECT count(*) FROM p2p WHERE send_call_id IS NOT NULL AND recv_call_id IS NOT NULL"), 3);
    EXPECT_EQ(
        trace.integer(
            "SELECT count(*) FROM p2p p JOIN recorder_call s ON s.call_id = p.send_call_id JOIN recorder_call r ON "
            "r.call_id = p.recv_call_id WHERE s.state <> r.state"),
        0);
}

TEST_F(FlightDumps, AllMembersOfAGroupAreTold) {
    const std::string status =
        R"(, "pg_status": {"0": {"last_enqueued_collective": 8, "last_completed_collective": 7}})";
    Database trace = import(
        {dump(groupsOf("0", "[0, 1, 2]"), {entry(90, "0", 8, "all_reduce", "scheduled")}, status), dump("", {}), ""});
    EXPECT_EQ(trace.integer("SELECT enqueued FROM recorder_group WHERE rank = 0"), 8);
    EXPECT_EQ(trace.integer("SELECT completed FROM recorder_group WHERE rank = 0"), 7);
    EXPECT_EQ(trace.integer("SELECT enqueued FROM recorder_group WHERE rank = 1"),
              0);  // its dump does not know the group
    EXPECT_EQ(trace.integer("SELECT count(*) FROM recorder_group WHERE rank = 2 AND enqueued IS NULL"), 1);
    EXPECT_EQ(trace.integer("SELECT count(*) FROM loss WHERE kind = 'missing_rank'"), 1);
}

TEST_F(FlightDumps, AfterAResetOfTheRecorderItIsNotKnownWhatWasCalledBefore) {
    // Records begin with 0 again, the group's calls go on from 7.
    const std::string after =
        dump(groupsOf("0", "[0, 1]") + ", " + groupsOf("1", "[0, 1]"),
             {entry(0, "0", 7, "all_reduce", "completed"), entry(1, "0", 8, "all_reduce", "scheduled")});
    EXPECT_FALSE(read(after).fromStart);
    EXPECT_TRUE(read(dump(groupsOf("0", "[0, 1]"),
                          {entry(0, "0", 1, "all_reduce", "completed"), entry(1, "0", 2, "all_reduce", "scheduled")}))
                    .fromStart);
    Database trace = import({after, after});
    EXPECT_EQ(trace.integer("SELECT count(*) FROM recorder_group WHERE enqueued IS NULL"), 2)
        << "of group 1, which may have been called on before";
}

TEST_F(FlightDumps, ADumpWithoutItsGroupsTakesThemFromTheOthers) {
    std::string bare = dump("", {entry(3, "0", 2, "all_reduce", "scheduled")});
    bare.erase(bare.find("\"pg_config\": {}, "), 17);
    Database trace = import({dump(groupsOf("0", "[0, 1]"), {entry(3, "0", 2, "all_reduce", "scheduled")}), bare});
    EXPECT_EQ(trace.integer("SELECT count(*) FROM communicator"), 1);
    EXPECT_EQ(trace.integer("SELECT members FROM collective"), 0);  // kernels, of which there are none
    EXPECT_EQ(trace.integer("SELECT complete FROM collective"), 1);
}

}  // namespace
}  // namespace rankscope::collector
