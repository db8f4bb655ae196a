// SPDX-License-Identifier: Apache-2.0
// Files that a mapping tells how to read: small ones here, those of other people in recorded_traces_test.cpp.
#include "collector/importers/reader_mapped.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "collector/importers/import.h"
#include "collector/importers/import_error.h"
#include "collector/store/sqlite.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using store::Database;
using store::OpenMode;

constexpr const char* kTimeline = R"({
  "rankscope_mapping": 1, "time_unit": "us", "axes": ["pp", "dp"],
  "tells": {"process_name": "DP {dp}", "thread_name": "PP {pp}, {lane}", "args.step": "{step}"},
  "events": [
    {"name": "forward", "kind": "compute", "differs": ["pp"]},
    {"name": "to-next", "kind": "send", "along": ["pp"], "peer": 1},
    {"name": "from-last", "kind": "recv", "along": ["pp"], "peer": -1},
    {"name": "grads-*", "kind": "all_reduce", "along": ["dp"]},
    {"name": "note", "kind": "range"},
    {"name": "counter", "kind": "ignored"}]})";

std::string named(const char* what, int pid, int tid, const std::string& name) {
    return R"({"ph": "M", "name": ")" + std::string(what) + R"(", "pid": )" + std::to_string(pid) + R"(, "tid": )" +
           std::to_string(tid) + R"(, "args": {"name": ")" + name + R"("}},)";
}

std::string event(const char* name, int pid, int tid, const char* ts, const char* dur, int step = 4) {
    return R"({"ph": "X", "name": ")" + std::string(name) + R"(", "pid": )" + std::to_string(pid) + R"(, "tid": )" +
           std::to_string(tid) + R"(, "ts": )" + ts + R"(, "dur": )" + dur + R"(, "args": {"step": )" +
           std::to_string(step) + "}},";
}

/// Two stages of two data-parallel ranks each.
std::string timeline(const std::string& more = "") {
    std::string text = "[";
    for (int dp = 0; dp < 2; ++dp) {
        text += named("process_name", dp, 0, "DP " + std::to_string(dp));
        for (int pp = 0; pp < 2; ++pp) {
            text += named("thread_name", dp, 10 * pp, "PP " + std::to_string(pp) + ", compute");
            text += named("thread_name", dp, 10 * pp + 1, "PP " + std::to_string(pp) + ", comm");
            text += event("forward", dp, 10 * pp, pp == 0 ? "100.5" : "130.5", "20");
            text += event("grads-all-reduce", dp, 10 * pp + 1, "160", "10.25");
        }
        text += event("to-next", dp, 1, "121", "9") + event("from-last", dp, 11, "121", "9.25");
    }
    text += more;
    text.back() = ']';
    return text;
}

class MappedFiles : public testing::Test {
  protected:
    Database import(const std::string& mapping, const std::vector<std::filesystem::path>& files) {
        ImportOptions options;
        options.mapping = m_folder.write("mapping.json", mapping);
        importRun(files, m_folder / "run", options);
        return Database((m_folder / "run/trace.db").string(), OpenMode::readOnly);
    }
    std::string errorOf(const std::string& mapping, const std::string& content) {
        try {
            import(mapping, {m_folder.write("events.json", content)});
        } catch (const ImportError& error) {
            EXPECT_FALSE(std::filesystem::exists(m_folder / "run"));
            return error.what();
        }
        return "";
    }

    const tests::TraceFolder m_folder;
};

TEST_F(MappedFiles, ATimelineTellsRanksWorkGroupsAndMessages) {
    Database trace = import(kTimeline, {m_folder.write("events.json", timeline())});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM meta WHERE key = 'source' AND value = 'mapped'"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM rank"), 4);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel WHERE nccl = 0 AND dur_ns = 20000"), 4);
    // Work of one name is another stage's own: ranks 0 and 1 are the data-parallel ones of stage 0.
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel k JOIN string s ON s.id = k.name_id WHERE "
                            "s.text = 'forward (pp ' || (k.rank / 2) || ')'"),
              4);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective WHERE op = 'all_reduce' AND members = 2 AND complete = 1"),
              2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM collective_member WHERE rank IN (0, 1) AND collective_id = "
                            "(SELECT collective_id FROM collective_member WHERE rank = 1)"),
              2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM p2p WHERE dst_rank = src_rank + 2 AND send_arrival_ns = "
                            "recv_arrival_ns AND recv_end_ns - send_end_ns = 250"),
              2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call WHERE bytes IS NOT NULL"), 0);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM step WHERE dur_ns = 69750"), 4);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE severity <> 'info'"), 0);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE '%is not judged%'"), 1);
}

TEST_F(MappedFiles, WhatTheMappingDoesNotKnowIsCounted) {
    const std::string more = event("forward", 7, 7, "1", "1") + event("backward", 0, 0, "1", "1") +
                             event("counter", 0, 0, "1", "1") + event("note", 0, 0, "110", "1") +
                             event("forward", 0, 0, "9", "-5") + event("forward", 0, 0, "\"x\"", "5");
    Database trace = import(kTimeline, {m_folder.write("events.json", timeline(more))});
    EXPECT_EQ(trace.integer("SELECT count FROM loss WHERE message LIKE '%nothing tells {pp}'"), 1);
    EXPECT_EQ(trace.integer("SELECT count FROM loss WHERE message LIKE '%does not know%\"backward\"'"), 1);
    EXPECT_EQ(trace.integer("SELECT count FROM loss WHERE message LIKE '%without a start or a length%'"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nvtx n JOIN string s ON s.id = n.name_id WHERE s.text = 'note'"), 1);
}

TEST_F(MappedFiles, AGroupOfOneIsWorkOfItsOwn) {
    const std::string text = "[" + named("process_name", 0, 0, "DP 0") + named("thread_name", 0, 0, "PP 0, comm") +
                             event("grads-x", 0, 0, "0", "5") + "{}]";
    Database trace = import(kTimeline, {m_folder.write("events.json", text)});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel WHERE nccl = 0"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM nccl_call"), 0);
}

constexpr const char* kPasses = R"({
  "rankscope_mapping": 1, "shape": "lists", "time_unit": "ms", "step_times": "restart", "axes": ["pp"],
  "tells": {"file_name": "stage{pp}.json", "key": "{step}"},
  "events": [{"name": "F", "kind": "compute", "start": "fs", "end": "fe"},
             {"name": "B", "kind": "compute", "start": "bs", "end": "be"}],
  "pipelines": {"axis": "pp", "forward": "F", "backward": "B"}})";

TEST_F(MappedFiles, ListsOfSeveralFilesAreLaidEndToEndByTheLongestRank) {
    // Three micro-batches over two stages: two passes stand before the first backward one.
    const auto first = m_folder.write("stage0.json", R"({"1": {"fs": [0, 1, 4], "fe": [1, 2, 5], "bs": [3, 6, 7.5],
        "be": [4, 7, 8]}, "2": {"fs": [0, 1, 4], "fe": [1, 2, 5], "bs": [3, 6, 7], "be": [4, 7, 8]}})");
    const auto second = m_folder.write("stage1.json", R"({"1": {"fs": [1, 3, 5], "fe": [2, 4, 6], "bs": [2, 4, 6],
        "be": [3, 5, 9]}, "2": {"fs": [1, 3, 5], "fe": [2, 4, 6], "bs": [2, 4, 6], "be": [3, 5, 7]}})");
    Database trace = import(kPasses, {first, second});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM step WHERE step = 0 AND dur_ns = 9000000"), 2);
    EXPECT_EQ(trace.integer("SELECT MIN(start_ns) FROM kernel WHERE rank = 1 AND start_ns > 8500000"), 10000000);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM meta WHERE key = 'told_pipelines' AND value = '1f1b 3;0 1'"), 1);
}

TEST_F(MappedFiles, ACompressedFileTellsByItsNameWhatItTellsInflated) {
    const std::string text = R"({"1": {"fs": [0, 1], "fe": [1, 2], "bs": [3, 6], "be": [4, 7]}})";
    Database trace = import(kPasses, {m_folder.write("stage0.json", text), m_folder.writeGzip("stage1.json.gz", text)});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM rank"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel WHERE rank = 1"), 4);
}

TEST_F(MappedFiles, ListsThatDoNotFitTogetherAreSaid) {
    Database trace = import(kPasses, {m_folder.write("stage0.json", R"({"1": {"fs": [0, 1], "fe": [1]}, "x": 5})")});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE message LIKE '%are not equally long%'"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM meta WHERE key = 'told_pipelines'"), 0);
}

TEST_F(MappedFiles, JaxTellsDevicesByTheNamesOfPlanesAndStreams) {
    std::ifstream file(std::filesystem::path(RANKSCOPE_MAPPINGS) / "jax-gpu.json");
    const std::string mapping((std::istreambuf_iterator<char>(file)), {});
    std::string text = R"({"displayTimeUnit": "ns", "metadata": {"highres-ticks": true}, "traceEvents": [)" +
                       named("process_name", 701, 0, "/host:CPU") + named("thread_name", 701, 5, "python") +
                       event("PjitFunction(step)", 701, 5, "1", "90");
    for (int device = 0; device < 2; ++device) {
        text += named("process_name", device + 1, 0, "/device:GPU:" + std::to_string(device)) +
                named("thread_name", device + 1, 10, "Stream #13(Compute)") +
                named("thread_name", device + 1, 11, "Stream #20(MemcpyD2H)") +
                named("thread_name", device + 1, 12, "XLA Ops") +
                event("loop_fusion", device + 1, 10, device == 0 ? "10" : "20", "5") +
                event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", device + 1, 10, device == 0 ? "15" : "25",
                      device == 0 ? "20" : "10") +
                event("MemcpyD2H", device + 1, 11, "40", "1") + event("all-reduce.1", device + 1, 12, "15", "20");
    }
    text += "{}]}";
    Database trace = import(mapping, {m_folder.write("host.trace.json", text)});
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM rank"), 2);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel"), 4) << "operations are not told twice";
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM memcpy"), 2);
    EXPECT_EQ(trace.integer("SELECT last_rank FROM collective WHERE op = 'all_reduce' AND members = 2"), 1);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE severity <> 'info'"), 0) << "the host's part is known";
}

TEST_F(MappedFiles, AFileThatIsCutOffGivesWhatStandsInFrontOfTheCut) {
    const std::string whole = timeline();
    Database trace = import(kTimeline, {m_folder.write("events.json", whole.substr(0, whole.size() - 40))});
    EXPECT_GT(trace.integer("SELECT COUNT(*) FROM kernel"), 0);
    EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM loss WHERE kind = 'torn_tail' AND severity = 'error'"), 1);
}

TEST_F(MappedFiles, WhatCannotBeUsedIsRefusedWithItsReason) {
    const auto refused = [&](const std::string& mapping, const std::string& content, const char* why) {
        EXPECT_NE(errorOf(mapping, content).find(why), std::string::npos) << errorOf(mapping, content);
    };
    refused(kTimeline, "[]", "no event in it is one that");
    refused(kTimeline, "5", "no event in it is one that");
    refused(kTimeline, "text", "nothing of it can be read as JSON");
    refused("", timeline(), "this is no mapping");
    refused("[]", timeline(), "this is no mapping");
    refused("{\"rankscope_mapping\": 2}", timeline(), "\"rankscope_mapping\": 1 does not stand in it");
    struct Case {
        const char *from, *to, *why;
    };
    const Case cases[] = {
        {"\"us\"", "\"hours\"", "\"time_unit\" is none of us, ns, ms, s"},
        {"\"time_unit\"", "\"timeunit\"", "\"timeunit\" is not known"},
        {"\"compute\"", "\"computes\"", "\"kind\" is none of compute, copy, range, ignored, send"},
        {"\"DP {dp}\"", "\"DP {dq}\"", "\"dq\" is none of its axes"},
        {"\"DP {dp}\"", "\"DP {dp\"", "a brace has no other one"},
        {"\"DP {dp}\"", "\"DP\"", "nothing in \"tells\" tells {dp}"},
        {", \"peer\": 1}", "}", "\"peer\" not how far"},
        {", \"along\": [\"dp\"]", "", "\"along\" does not name the axes of the group of events \"grads-*\""},
        {"\"axes\": [\"pp\", \"dp\"]", "\"axes\": [\"step\"]", "other than lane and step"},
        {"\"axes\"", "\"shape\": \"lists\", \"axes\"", "\"start\" and \"end\" do not name"},
        // Values of another type.
        {"\"rankscope_mapping\": 1", "\"rankscope_mapping\": \"1\"", "\"rankscope_mapping\" is no whole number"},
        {"\"us\"", "5", "\"time_unit\" is no text"},
        {"[\"pp\", \"dp\"]", "\"pp\"", "\"axes\" is no list"},
        {"[\"pp\", \"dp\"]", "[\"pp\", 7]", "\"axes\" is no list of texts"},
        {"\"DP {dp}\"", "[\"DP {dp}\"]", "\"process_name\" is no text in \"tells\""},
        {"\"peer\": 1}", "\"peer\": \"1\"}", "\"peer\" is no whole number of events \"to-next\""},
        {"\"peer\": 1}", "\"peer\": 1.5}", "\"peer\" is no whole number of events \"to-next\""},
        {"\"peer\": 1}", "\"peer\": true}", "\"peer\" is no whole number of events \"to-next\""},
        {"\"differs\": [\"pp\"]", "\"differs\": \"pp\"", "\"differs\" is no list of events \"forward\""},
        {"\"kind\": \"compute\"", "\"kind\": 3", "\"kind\" is no text of events \"forward\""},
        {"\"name\": \"note\"", "\"name\": {}", "\"name\" is no text of one of \"events\""},
        {"{\"name\": \"note\", \"kind\": \"range\"}", "\"note\"", "one of \"events\" is no object"},
        {"\"axes\"", "\"pipelines\": [], \"axes\"", "\"pipelines\" is no object"},
        {"\"axes\"", "\"pipelines\": {\"axis\": \"pp\", \"forward\": 1, \"backward\": \"b\"}, \"axes\"",
         "\"forward\" is no text of \"pipelines\""},
    };
    for (const auto& [from, to, why] : cases) {
        std::string mapping = kTimeline;
        const size_t at = mapping.find(from);
        ASSERT_NE(at, std::string::npos) << from;
        mapping.replace(at, std::string(from).size(), to);
        refused(mapping, timeline(), why);
        refused(mapping, timeline(), "mapping.json, offset 0: this is no mapping");
    }
    const std::string huge = "[" + named("process_name", 0, 0, "DP 16000000") +
                             named("thread_name", 0, 0, "PP 16000000, x") + event("forward", 0, 0, "0", "5") + "{}]";
    refused(kTimeline, huge, "its axes make more than");
}

}  // namespace
}  // namespace rankscope::collector
