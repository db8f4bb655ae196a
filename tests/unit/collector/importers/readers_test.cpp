// SPDX-License-Identifier: Apache-2.0
// The seam between an import and its formats: which reader a file is for, and what an import makes of what it reads.
#include "collector/importers/readers.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>

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

/// The name of the reader that a file is for, or why none is.
std::string destination(std::string_view content) {
    const TraceFolder folder;
    try {
        return readerOf(folder.write("file", content)).name;
    } catch (const ImportError& error) {
        return error.what();
    }
}

size_t readersThatRecognise(std::string_view content) {
    size_t count = 0;
    for (const Reader* reader : readers()) count += reader->recognises(content);
    return count;
}

TEST(Readers, EachFormatGoesToItsReaderOrIsRefusedByName) {
    struct Case {
        std::string content, told;
        size_t readers;  // that recognise it: Kineto's takes any JSON, and is asked last
    };
    const Case cases[] = {
        {R"({"traceEvents": []})", "kineto", 1},
        {"[]", "kineto", 1},
        {"\xef\xbb\xbf \n{\"schemaVersion\": 1}", "kineto", 1},
        {R"({"schemaVersion": 1, "pg_config": {}, "entries": []})", "kineto", 1},
        {R"({"version": "2.9", "pg_config": {"0": {}}})", "flight_recorder", 2},
        {R"({"entries": [], "pg_config": {}})", "flight_recorder", 2},
        {R"({"entries": [{"collective_seq_id": 1, "profiling_name": "nccl:send 0->1", "record_id": 0}]})",
         "flight_recorder", 2},
        {"\x80\x02}q\x01", "flight_recorder", 1},
        {"SQLite format 3\0 page"s, "nsys", 2},
        {"QDSTREAM", "report of Nsight Systems", 0},
        {"NVTXT", "report of Nsight Systems", 0},
        {"\x1b\x01nsys", "report of Nsight Systems", 0},
        {"RANKSCAP", "capture file of Rankscope", 0},
        {"node: NCCL INFO\n0: # nThread 1 nGpus 8 minBytes 8 maxBytes 64", "the output of nccl-tests", 0},
        {"# out-of-place in-place\n# size count busbw", "--links-table FILE[:OPERATION]", 0},
        {"# nThread of a program", "the format is not known", 0},
        {R"({"metadata": {"inspector_output_format_version": "v4.0"}})", "nccl_inspector", 2},
        {R"({"1": {"fwd_start": [0], "fwd_end": [1]}})", "Primus' times of a pipeline", 1},
        {R"({"displayTimeUnit":"ns","otherData":{"tool":"rankscope","run":"x"},"traceEvents":[]})", "export", 2},
        {"\x0a\x20*\x1e\x12\x1c\x0a\x0drankscope_run\x12\x01{", "export", 1},
        {R"({"rocprofiler-sdk-tool": [{"metadata": {}}]})", "rocprofv3", 2},
        {"[\n{\"name\": \"AllReduce\", \"cat\": \"COLL\", \"ph\": \"b\"},", "nccl_profiler", 2},
        {"\x0a\x20/host:CPU\x12/device:GPU:0", "xplane", 1},
        {"# nccl-tests", "the format is not known", 0},
        {"\x80", "the format is not known", 0},
        {" \n", "white space only", 0},
        {"", "the file is empty", 0},
    };
    for (const auto& [content, told, count] : cases) {
        EXPECT_NE(destination(content).find(told), std::string::npos) << content << ": " << destination(content);
        EXPECT_EQ(readersThatRecognise(content), count) << content;
    }
}

TEST(Readers, AnUnknownFormatIsToldWhatIsExpected) {
    const std::string told = destination("rank,time");
    EXPECT_NE(told.find(" is expected, "), std::string::npos) << told;
    EXPECT_NE(told.find("a PyTorch (Kineto) or Chrome trace"), std::string::npos) << told;
    for (const Reader* reader : readers()) EXPECT_NE(told.find(reader->expected), std::string::npos) << told;
}

TEST(Readers, EachSaysWhatItIs) {
    for (const Reader* reader : readers()) {
        EXPECT_STRNE(reader->name, "");
        EXPECT_STRNE(reader->expected, "") << reader->name;
        EXPECT_FALSE(reader->endings.empty()) << reader->name;
        EXPECT_TRUE(reader->recognises != nullptr && reader->read) << reader->name;
    }
}

/// "pair" and, in lines, a rank and the start of its kernel.
const Reader kPairReader{
    .name = "pair",
    .expected = "a pair",
    .endings = {".pair"},
    .recognises = [](std::string_view head) { return head.starts_with("pair"); },
    .read =
        [](const std::filesystem::path& file, const ReadOptions&, const std::function<void(FileRank)>& take) {
            std::ifstream in(file);
            std::string word;
            in >> word;
            for (int64_t rank = 0, startNs = 0; in >> rank >> startNs;) {
                FileRank read;
                read.events = 1;
                if (rank >= 0) read.header.rank = rank;
                read.recording.streams.push_back({});
                store::Kernel kernel;
                kernel.streamId = 0;
                kernel.startNs = startNs;
                kernel.durNs = 10;
                kernel.nameId = read.recording.strings.intern("gemm" + std::to_string(startNs));
                read.recording.kernels.push_back(kernel);
                take(std::move(read));
            }
        },
};

constexpr std::array kPairAndKineto{&kPairReader, &kKinetoReader};

TEST(Readers, OneFileMayHoldSeveralRanksEvenWhenMemoryIsShort) {
    const TraceFolder folder;
    const auto file = folder.write("both.pair", "pair\n5 1000\n2 1400\n");
    for (const uint64_t keepBytes : {uint64_t{1} << 30, uint64_t{1}}) {
        const auto run = folder / std::to_string(keepBytes);
        ImportOptions options;
        options.keepBytes = keepBytes;
        options.readers = kPairAndKineto;
        const ImportResult result = importRun({file}, run, options);
        EXPECT_EQ(result.source, "pair");
        EXPECT_EQ(result.ranks, (std::vector<int32_t>{2, 5}));
        EXPECT_EQ(result.events, 2u);
        Database trace((run / "trace.db").string(), OpenMode::readOnly);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM meta WHERE key = 'source' AND value = 'pair'"), 1);
        EXPECT_EQ(trace.integer("SELECT COUNT(*) FROM kernel k JOIN string s ON s.id = k.name_id WHERE "
                                "(k.rank = 5 AND s.text = 'gemm1000') OR (k.rank = 2 AND s.text = 'gemm1400')"),
                  2);
        EXPECT_EQ(trace.integer("SELECT start_ns FROM kernel WHERE rank = 2"), 400);
    }
}

TEST(Readers, AFileNameTellsTheRankOfAFileWithOneOnly) {
    const TraceFolder folder;
    ImportOptions options;
    options.readers = kPairAndKineto;
    EXPECT_EQ(importRun({folder.write("rank7.pair", "pair -1 5")}, folder / "one", options).ranks,
              (std::vector<int32_t>{7}));
    EXPECT_EQ(importRun({folder.write("rank7.pair", "pair -1 5 -1 6")}, folder / "two", options).ranks,
              (std::vector<int32_t>{0, 1}));
}

TEST(Readers, AnImportIsOfOneFormatAndOfOneRankAtLeast) {
    const TraceFolder folder;
    ImportOptions options;
    options.readers = kPairAndKineto;
    const auto errorOf = [&](const std::vector<std::filesystem::path>& files) -> std::string {
        try {
            importRun(files, folder / "run", options);
        } catch (const ImportError& error) {
            return error.what();
        }
        return "";
    };
    const auto pair = folder.write("a.pair", "pair 0 5");
    const std::string mixed = errorOf({pair, folder.write("b.json", R"({"traceEvents": []})")});
    EXPECT_NE(mixed.find("b.json, offset 0: it is a PyTorch (Kineto) or Chrome trace, but "), std::string::npos);
    EXPECT_NE(mixed.find("a.pair is a pair\n"), std::string::npos);
    EXPECT_NE(errorOf({folder.write("none.pair", "pair")}).find("it tells of no rank"), std::string::npos);
    EXPECT_NE(
        errorOf({folder.write("x", "?")}).find("a pair is expected, .pair, or a PyTorch (Kineto) or Chrome trace"),
        std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

}  // namespace
}  // namespace rankscope::collector
