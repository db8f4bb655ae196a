// SPDX-License-Identifier: Apache-2.0
// Tables of nccl-tests: real ones where the recorded data are at hand, and what is wrong with others.
#include "analyzer/costs/nccl_tests_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "analyzer/costs/algorithm_support.h"
#include "analyzer/costs/nccl_names.h"
#include "analyzer/facts/operation.h"
#include "collector/store/error.h"
#include "tests/unit/analyzer/trace_fixture.h"

namespace rankscope::costs {
namespace {

using store::Op;

struct Sheet {
    int ranks = 4;
    int hosts = 1;
    double busbwScale = 1;
    std::string before, wrong = "0", end = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 58.2\n#\n";

    std::string text() const {
        std::string out = before +
                          "# nThread 1 nGpus 4 minBytes 1024 maxBytes 67108864 step: 4(factor) warmup iters: 5 iters: "
                          "20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n";
        for (int rank = 0; rank < ranks; ++rank)
            out += fmt::format("#  Rank {:2} Group  0 Pid {:6} on host-{} device  {} [0x10] NVIDIA H100\n", rank,
                               100 + rank, rank * hosts / ranks, rank);
        out +=
            "#\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw  "
            " busbw #wrong\n";
        for (double bytes = 1024; bytes <= 1 << 26; bytes *= 4) {
            const double us = 30 + bytes / 100e3, algbw = bytes / us / 1e3,
                         busbw = busbwScale * algbw * facts::busFactor(Op::allReduce, ranks);
            out += fmt::format(
                "{:12.0f} {:12.0f}     float     sum      -1 {:8.2f} {:7.2f} {:7.2f} {:>6} {:8.2f} {:7.2f} {:7.2f} "
                "{:>6}\n",
                bytes, bytes / 4, us, algbw, busbw, wrong, us, algbw, busbw, wrong);
        }
        return out + end;
    }
};

class NcclTests : public testing::Test {
  protected:
    std::filesystem::path file(const std::string& text, const std::string& name = "sweep.txt") const {
        std::ofstream(m_folder.path() / name) << text;
        return m_folder.path() / name;
    }
    std::string refusal(const std::string& text, const NcclTestsHints& hints = {}) const {
        try {
            readNcclTestsTables(file(text), hints);
        } catch (const store::Error& error) {
            EXPECT_FALSE(error.hint().empty()) << error.cause();
            return error.cause();
        }
        return "accepted";
    }
    test::TemporaryFolder m_folder;
};

TEST_F(NcclTests, ATableTellsOperationRanksNodesAndTimes) {
    Sheet sheet;
    sheet.hosts = 2;
    const auto tables = readNcclTestsTables(file(sheet.text()));
    ASSERT_EQ(tables.size(), 1u);
    EXPECT_EQ(tables[0].op, Op::allReduce);
    EXPECT_EQ(tables[0].ranks, 4);
    EXPECT_EQ(tables[0].nodes, 2);
    ASSERT_EQ(tables[0].rows.size(), 9u);
    EXPECT_EQ(tables[0].rows.back().bytes, 1 << 26);
    EXPECT_NEAR(tables[0].timeUs(tables[0].rows.back()), 30 + 671.09, 0.01);
    EXPECT_EQ(tables[0].algorithm, store::Algorithm::unknown);
}

/// Launchers that label what each process prints: srun --label, mpirun --tag-output, and a launcher of mpirun.
TEST_F(NcclTests, LabelsInFrontOfEveryLineAreNoPartOfIt) {
    const NcclTestsTable plain = readNcclTestsTables(file(Sheet{.hosts = 2}.text())).at(0);
    for (const std::string label :
         {"0: ", " 12: ", "[1,0]<stdout>:", "[1,0]<stdout>: ", "(head, pid=1) [1,0]<stdout>:"}) {
        std::istringstream lines(Sheet{.hosts = 2}.text());
        std::string labelled;
        for (std::string line; std::getline(lines, line);) labelled += label + line + "\n";
        const NcclTestsTable table = readNcclTestsTables(file(labelled)).at(0);
        EXPECT_EQ(table.ranks, plain.ranks) << label;
        EXPECT_EQ(table.nodes, plain.nodes) << label;
        ASSERT_EQ(table.rows.size(), plain.rows.size()) << label;
        EXPECT_EQ(table.rows.back().inPlaceUs, plain.rows.back().inPlaceUs) << label;
    }
}

TEST_F(NcclTests, ASweepIsSeveralTablesWithTheVariablesOfEach) {
    Sheet ring, tree;
    ring.before = "+ NCCL_ALGO=Ring NCCL_PROTO=LL mpirun -n 4 ./build/all_reduce_perf -b 1K -e 64M -f 4\n";
    tree.before =
        "host:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Tree.\nhost:1:1 [0] NCCL INFO NCCL_PROTO set by "
        "environment to Simple.\nNCCL version 2.28.9+cuda13.0\n";
    const auto tables = readNcclTestsTables(file(ring.text() + tree.text()));
    ASSERT_EQ(tables.size(), 2u);
    EXPECT_EQ(tables[0].algorithm, store::Algorithm::ring);
    EXPECT_EQ(tables[0].protocol, store::Protocol::ll);
    EXPECT_EQ(tables[1].algorithm, store::Algorithm::tree);
    EXPECT_EQ(tables[1].protocol, store::Protocol::simple);
}

TEST_F(NcclTests, AVariableHoldsForTheCommandItStandsBefore) {
    Sheet ring, after, exported, always;
    ring.before = "+ NCCL_ALGO=Ring\n+ mpirun -n 4 ./build/all_reduce_perf -b 1K -e 64M -f 4\n";
    after.before = "+ mpirun -n 4 ./build/all_reduce_perf -b 1K -e 64M -f 4\n";
    exported.before = "+ export NCCL_PROTO=LL\n" + after.before;
    const auto tables =
        readNcclTestsTables(file(ring.text() + after.text() + exported.text() + ring.text() + after.text()));
    ASSERT_EQ(tables.size(), 5u);
    EXPECT_EQ(tables[0].algorithm, store::Algorithm::ring);
    EXPECT_EQ(tables[1].algorithm, store::Algorithm::unknown);
    EXPECT_EQ(tables[1].protocol, store::Protocol::unknown);
    EXPECT_EQ(tables[2].protocol, store::Protocol::ll);
    EXPECT_EQ(tables[3].algorithm, store::Algorithm::ring);
    EXPECT_EQ(tables[4].algorithm, store::Algorithm::unknown);
    EXPECT_EQ(tables[4].protocol, store::Protocol::ll);
    // As `env` prints it.
    always.before = "NCCL_ALGO=Tree\n";
    const auto both = readNcclTestsTables(file(always.text() + after.text()));
    EXPECT_EQ(both.at(0).algorithm, store::Algorithm::tree);
    EXPECT_EQ(both.at(1).algorithm, store::Algorithm::tree);
}

TEST_F(NcclTests, AVariableThatIsTakenBackHoldsForNoLaterTable) {
    Sheet exported, later;
    exported.before = "+ export NCCL_ALGO='Ring'\n";
    for (const char* back : {"+ unset NCCL_ALGO\n", "export NCCL_ALGO=\n", "unset NCCL_PROTO NCCL_ALGO\n"}) {
        later.before = back;
        const auto tables = readNcclTestsTables(file(exported.text() + later.text()));
        EXPECT_EQ(tables.at(0).algorithm, store::Algorithm::ring);
        EXPECT_EQ(tables.at(1).algorithm, store::Algorithm::unknown) << back;
    }
}

TEST_F(NcclTests, AVariablePerFunctionIsReadForTheTablesOwn) {
    Sheet sheet;
    sheet.before = "+ NCCL_ALGO=allgather:ring;allreduce:tree NCCL_PROTO=^LL all_reduce_perf\n";
    const NcclTestsTable table = readNcclTestsTables(file(sheet.text())).at(0);
    EXPECT_EQ(table.algorithm, store::Algorithm::tree);
    EXPECT_EQ(table.protocol, store::Protocol::unknown);
    EXPECT_EQ(table.severalChoices, "NCCL_PROTO=^LL") << "which of the two others ran is not told";
    sheet.before = "+ NCCL_ALGO=allgather:tree,allreduce:ring all_reduce_perf\n";
    EXPECT_TRUE(readNcclTestsTables(file(sheet.text())).at(0).severalChoices.empty());
}

TEST_F(NcclTests, TheVersionAndTheGpusOfAThreadAreRead) {
    Sheet sheet;  // -g 4
    sheet.before = "host:1:1 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n";
    NcclTestsTable table = readNcclTestsTables(file(sheet.text())).at(0);
    EXPECT_EQ(table.ncclVersion, "2.21.5+cuda12.4");
    EXPECT_EQ(table.gpusPerThread, 4);
    sheet.before = "# nccl-tests version 2.17.1 nccl-headers=22809 nccl-library=22809\n";
    std::string text = sheet.text();
    text.replace(text.find("nGpus 4"), 7, "nGpus 1");
    table = readNcclTestsTables(file(text)).at(0);
    EXPECT_EQ(table.ncclVersion, "22809");
    EXPECT_EQ(table.gpusPerThread, 1);
    // Without that line the processes of the device list tell: a process for each.
    const size_t line = text.find("# nThread");
    text.erase(line, text.find('\n', line) + 1 - line);
    EXPECT_EQ(readNcclTestsTables(file(text)).at(0).gpusPerThread, 1);
    for (size_t at = text.find(" Pid "); at != std::string::npos; at = text.find(" Pid ", at + 5))
        text.replace(at + 5, 6, "   100");
    EXPECT_EQ(readNcclTestsTables(file(text)).at(0).gpusPerThread, 4);
}

/// A table whose busbw is its algbw, with -1 or 0 as root.
std::string factorOne(const std::string& root) {
    Sheet sheet;
    sheet.busbwScale = 1 / facts::busFactor(Op::allReduce, sheet.ranks);
    std::string text = sheet.text();
    for (size_t at = text.find("sum      -1"); at != std::string::npos; at = text.find("sum      -1", at + 1))
        text.replace(at, 11, "sum " + std::string(7 - root.size(), ' ') + root);
    return text;
}

TEST_F(NcclTests, SendrecvIsNoReduction) {
    EXPECT_EQ(readNcclTestsTables(file(factorOne("0"))).at(0).op, Op::reduce);
    EXPECT_NE(refusal(factorOne("-1")).find("operation is not told"), std::string::npos);
    EXPECT_EQ(readNcclTestsTables(file(factorOne("-1"), "sendrecv.txt")).at(0).op, Op::send);
    EXPECT_EQ(readNcclTestsTables(file("+ ./build/sendrecv_perf -g 4\n" + factorOne("-1"))).at(0).op, Op::send);
    EXPECT_EQ(parseEvidenceSource("a.txt:sendrecv").hints.op, Op::send);
}

TEST_F(NcclTests, MissingColumnsAreNamed) {
    std::string text = Sheet{}.text();
    std::string noBusbw = text;
    for (size_t at = noBusbw.find("busbw"); at != std::string::npos && at < noBusbw.find("# Avg");
         at = noBusbw.find("busbw"))
        noBusbw.erase(at, 5);
    EXPECT_EQ(refusal(noBusbw),
              "line 9: the column heads name busbw 0 times instead of twice, out of place and in place: columns are "
              "missing");
    std::string half = text;
    half.erase(half.rfind("time   algbw"), 12);
    EXPECT_NE(refusal(half).find("line 9: the column heads name time once"), std::string::npos) << refusal(half);
}

TEST_F(NcclTests, WhatCannotBeEvidenceIsRefusedWithLineAndReason) {
    Sheet sheet;
    sheet.ranks = 1;
    EXPECT_NE(refusal(sheet.text()).find("one rank"), std::string::npos);
    sheet = {};
    sheet.busbwScale = 0;
    EXPECT_NE(refusal(sheet.text()).find("bus bandwidth is 0"), std::string::npos);
    sheet = {};
    sheet.busbwScale = 0.5;
    EXPECT_NE(refusal(sheet.text(), {Op::allReduce, {}, {}})
                  .find("busbw / algbw is 0.750, for all_reduce over 4 ranks it is 1.500"),
              std::string::npos);
    sheet = {};
    sheet.wrong = "7";
    EXPECT_EQ(refusal(sheet.text()), "line 10: 14 wrong elements");
    sheet = {};
    const std::string whole = Sheet{}.text();
    const size_t row = whole.find("     1048576");
    const size_t end = whole.find('\n', row);
    EXPECT_NE(refusal(whole.substr(0, end - 30) + whole.substr(end)).find("line 15: a row of 9 columns"),
              std::string::npos)
        << refusal(whole.substr(0, end - 30) + whole.substr(end));
    std::string swapped = whole;
    swapped.replace(swapped.find("701.09"), 6, "101.09");
    EXPECT_NE(refusal(swapped).find("columns do not belong together"), std::string::npos);
    EXPECT_NE(refusal("hello\n").find("no table"), std::string::npos);
    EXPECT_NE(refusal(whole.substr(whole.find("#\n#       size"))).find("no device list"), std::string::npos);
    EXPECT_THROW(readNcclTestsTables(m_folder.path() / "absent"), store::Error);
}

/// Where a file ends inside a table, its whole rows are read; the heads say which these are.
TEST_F(NcclTests, AFileThatEndsInsideATableGivesItsWholeRows) {
    const std::string whole = Sheet{}.text();
    const NcclTestsTable all = readNcclTestsTables(file(whole)).at(0);
    EXPECT_EQ(all.cutLine, 0);
    const size_t last = whole.find("    67108864"), end = whole.find('\n', last);
    for (size_t at = last + 13; at <= end; ++at) {
        const NcclTestsTable cut = readNcclTestsTables(file(whole.substr(0, at))).at(0);
        EXPECT_EQ(cut.cutLine, 18) << whole.substr(last, at - last);
        // The last column may have been longer, which nobody can know; it holds no time.
        const size_t rows = at == end ? all.rows.size() : all.rows.size() - 1;
        EXPECT_EQ(cut.rows.size(), rows) << whole.substr(last, at - last);
        EXPECT_EQ(cut.rows[7].inPlaceUs, all.rows[7].inPlaceUs);
    }
    // What a launcher adds in the same line is no column.
    const NcclTestsTable killed =
        readNcclTestsTables(file(whole.substr(0, end - 30) +
                                 "slurmstepd: error: *** STEP 12.0 ON host-0 CANCELLED DUE TO TIME LIMIT ***\n"
                                 "srun: error: host-0: task 0: Killed\n"))
            .at(0);
    EXPECT_EQ(killed.cutLine, 18);
    EXPECT_EQ(killed.rows.size(), all.rows.size() - 1);
    // Wrong results are no cut, nor is a table without a whole row.
    EXPECT_NE(refusal(whole.substr(0, end - 1) + "3").find("line 18: 3 wrong elements"), std::string::npos);
    const size_t first = whole.find("        1024");
    EXPECT_NE(refusal(whole.substr(0, first)).find("before its first whole row"), std::string::npos);
    EXPECT_NE(refusal(whole.substr(0, first + 40)).find("line 10: a row of"), std::string::npos);
    // Inside a file nobody knows what else is missing.
    EXPECT_NE(refusal(whole.substr(0, end - 30) + "\n" + whole).find("line 18: a row of"), std::string::npos);
    EXPECT_NE(refusal(whole.substr(0, end + 1) + whole).find("the one before was cut off"), std::string::npos);
}

TEST_F(NcclTests, TheHeadsDecideWhatAColumnIs) {
    const auto times = [&](const std::string& heads, const std::string& row) {
        std::string text = Sheet{}.text();
        const size_t head = text.find("#       size"), end = text.find("# Out of bounds");
        text.replace(head, end - head, heads + "\n" + row + "\n");
        const NcclTestsTable table = readNcclTestsTables(file(text), {Op::allReduce, {}, {}}).at(0);
        return std::pair(table.rows.at(0).outOfPlaceUs, table.rows.at(0).inPlaceUs);
    };
    const std::pair expected(40.0, 50.0);
    EXPECT_EQ(times("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong",
                    "1000000 250000 float sum -1 40.00 25.00 37.50 0 50.00 20.00 30.00 N/A"),
              expected);
    EXPECT_EQ(times("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong",
                    "1000000 250000 float -1 40.00 25.00 37.50 0 50.00 20.00 30.00 0"),
              expected)
        << "no reduction is printed as nothing";
    EXPECT_EQ(times("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong",
                    "1000000 250000 float 40.00 25.00 37.50 0 50.00 20.00 30.00 0"),
              expected);
    EXPECT_EQ(times("# size count type redop time algbw busbw time algbw busbw",
                    "1000000 250000 float sum 40.00 25.00 37.50 50.00 20.00 30.00"),
              expected);
    EXPECT_EQ(
        times("# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong "
              "i_min i_max i_p99 i_cv%",
              "1000000 250000 float sum -1 40.00 25.00 37.50 0 38 44 43 2.5 50.00 20.00 30.00 0 45 55 54 3.1"),
        expected)
        << "times of each iteration";
    EXPECT_EQ(times("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong timestamp",
                    "1000000 250000 float sum -1 40.00 25.00 37.50 0 50.00 20.00 30.00 0 2026-01-31 12:00:00"),
              expected);
}

TEST_F(NcclTests, ALabelThatNcclDoesNotHaveIsRefusedWithWhatItHas) {
    struct Case {
        const char* label;
        int hosts;
        const char* refused;  // empty: it is accepted
        const char* hint;
    };
    for (const Case& one : std::initializer_list<Case>{
             {"allreduce:nvls/ll", 1, "nvls/ll, which NCCL does not have for all_reduce on 1 node", "nvls"},
             {"allreduce:pat", 1, "pat, which NCCL does not have for all_reduce",
              "ring, tree with LL, LL128 or Simple"},
             {"allreduce:nvlstree/simple", 1, "nvlstree/simple, which NCCL does not have", "collnetchain with Simple"},
             {"allreduce:nvlstree/simple", 2, "", ""},
             {"allreduce:nvls/simple", 1, "", ""},
             {"allreduce:tree/ll128", 2, "", ""},
             {"allreduce:ll", 2, "", ""},
             {"allreduce:collnetdirect/ll128", 2, "collnetdirect/ll128", "collnetdirect"}}) {
        const EvidenceSource source = parseEvidenceSource(std::string("a.txt:") + one.label);
        Sheet sheet;
        sheet.hosts = one.hosts;
        try {
            readNcclTestsTables(file(sheet.text()), source.hints);
            EXPECT_STREQ(one.refused, "") << one.label;
        } catch (const store::Error& error) {
            EXPECT_NE(*one.refused, '\0') << one.label << ": " << error.cause();
            EXPECT_NE(error.cause().find(one.refused), std::string::npos) << error.cause();
            EXPECT_NE(error.cause().find("line 9: "), std::string::npos) << error.cause();
            EXPECT_NE(error.hint().find(one.hint), std::string::npos) << error.hint();
        }
    }
    EXPECT_TRUE(existsIn(Op::allGather, 2, {store::Algorithm::pat, store::Protocol::simple}));
    EXPECT_FALSE(existsIn(Op::allGather, 2, {store::Algorithm::tree, store::Protocol::unknown}));
    EXPECT_FALSE(existsIn(Op::broadcast, 2, {store::Algorithm::nvls, store::Protocol::simple}));
    EXPECT_FALSE(existsIn(Op::allToAll, 2, {store::Algorithm::unknown, store::Protocol::ll}));
    EXPECT_TRUE(existsIn(Op::allToAll, 2, {store::Algorithm::unknown, store::Protocol::unknown}));
    // Variables that a log shows are no label: the table is read, and not used.
    Sheet pat;
    pat.before = "+ NCCL_ALGO=PAT all_reduce_perf\n";
    EXPECT_EQ(readNcclTestsTables(file(pat.text())).at(0).noSuchChoice, "pat");
    pat.before = "+ NCCL_ALGO=Tree all_reduce_perf\n";
    EXPECT_EQ(readNcclTestsTables(file(pat.text())).at(0).noSuchChoice, "");
}

TEST_F(NcclTests, WhatIsWrongIsSaidAsItIs) {
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = Sheet{}.text();
        for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
            text.replace(at, from.size(), to);
        return text;
    };
    EXPECT_NE(refusal(with("   30.01 ", "   -5.00 ")).find("line 10: a time of -5 us"), std::string::npos)
        << refusal(with("   30.01 ", "   -5.00 "));
    // A number that no integer holds, and one that it just does.
    for (const char* size : {"9223372036854775807", "9223372036854775808", "1e300"})
        EXPECT_NE(refusal(with("    67108864 ", std::string(size) + " ")).find("line 18"), std::string::npos) << size;
    const std::string huge =
        "9223372036854775807 1 float sum -1 1e9 9223372.04 13835058.06 0 1e9 9223372.04 13835058.06 0\n";
    std::string text = Sheet{}.text();
    text.insert(text.find("# Out of bounds"), huge);
    EXPECT_NE(refusal(text).find("line 19: a size of 9.22337e+18 bytes, which no device holds"), std::string::npos)
        << refusal(text);
    try {
        readNcclTestsTables(m_folder.path());
        FAIL();
    } catch (const store::Error& error) {
        EXPECT_EQ(error.cause(), "is a folder");
    }
    // The operation that was named is the wrong one: those that fit are told.
    try {
        readNcclTestsTables(file(Sheet{}.text()), {Op::allGather, {}, {}});
        FAIL();
    } catch (const store::Error& error) {
        EXPECT_EQ(error.hint(), "the operation is another: name it behind the file, FILE:allreduce");
    }
}

TEST_F(NcclTests, TheCommandLineNamesWhatAFileDoesNotTell) {
    const EvidenceSource source = parseEvidenceSource("a/b.txt:allgather:ring/ll128");
    EXPECT_EQ(source.path, "a/b.txt");
    EXPECT_EQ(source.hints.op, Op::allGather);
    EXPECT_EQ(source.hints.algorithm, store::Algorithm::ring);
    EXPECT_EQ(source.hints.protocol, store::Protocol::ll128);
    EXPECT_EQ(parseEvidenceSource("plain.txt").hints.op, Op::unknown);
    EXPECT_THROW(parseEvidenceSource("a.txt:alreduce"), store::Error);
}

TEST_F(NcclTests, RealOutputsAreRead) {
    std::filesystem::path data = "../shared/data/nccl_tests";
    for (std::filesystem::path up = std::filesystem::current_path(); up.has_relative_path(); up = up.parent_path())
        if (std::filesystem::exists(up.parent_path() / "shared/data/nccl_tests"))
            data = up.parent_path() / "shared/data/nccl_tests";
    if (!std::filesystem::exists(data)) GTEST_SKIP() << "no recorded outputs beside this source tree";
    const auto a100 = readNcclTestsTables(data / "superbench_a100x8/nccl_allreduce.log");
    ASSERT_EQ(a100.size(), 1u);
    EXPECT_EQ(a100[0].op, Op::allReduce);
    EXPECT_EQ(a100[0].ranks, 8);
    EXPECT_EQ(a100[0].nodes, 1);
    EXPECT_EQ(a100[0].rows.back().bytes, 8589934592);
    EXPECT_EQ(readNcclTestsTables(data / "superbench_a100x8/nccl_alltoall.log")[0].op, Op::allToAll);
    EXPECT_EQ(readNcclTestsTables(data / "superbench_a100x8/nccl_reducescatter.log")[0].op, Op::reduceScatter);
    const auto efa = readNcclTestsTables(data / "p4d_a100x16_efa/nccl-tests_slurm-104.out", {Op::allGather, {}, {}});
    ASSERT_EQ(efa.size(), 1u);
    EXPECT_EQ(efa[0].ranks, 16);
    EXPECT_EQ(efa[0].nodes, 2);
    EXPECT_NEAR(efa[0].timeUs(efa[0].rows.front()), 89.27, 0.01);
}

}  // namespace
}  // namespace rankscope::costs
