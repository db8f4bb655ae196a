// SPDX-License-Identifier: Apache-2.0
// A trace.db whose every column holds, in turn, what no writer of ours puts there: every entry of the verbs refuses it
// with file and hint or reads on.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>

#include "analyzer/compare/run_summary.h"
#include "analyzer/compare/summary_file.h"
#include "analyzer/edits/edit.h"
#include "analyzer/edits/what_if.h"
#include "analyzer/export/about_run.h"
#include "analyzer/export/exported_event.h"
#include "analyzer/export/walk_trace.h"
#include "analyzer/recommend/recommend.h"
#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"
#include "collector/store/sqlite.h"
#include "tests/unit/analyzer/trace_fixture.h"

#if defined(__SANITIZE_ADDRESS__)
#define RANKSCOPE_ADDRESS_SANITIZER 1
#endif

namespace rankscope::test {
namespace {

namespace fs = std::filesystem;

// Two nodes of two ranks; every step computes, reduces and sends a message, with its host calls.
void writeJob(const fs::path& file) {
    TraceFixture job(4, 2);
    job.links("intra:gbps=200,alpha_us=6;inter:gbps=20,alpha_us=18").clockBound(100);
    const int world = job.communicator({0, 1, 2, 3});
    const int node = job.communicator({0, 1});
    for (int step = 0; step < 3; ++step) {
        const int64_t start = step * 10 * kMs;
        for (int rank = 0; rank < 4; ++rank) {
            job.step(rank, step, start, 10 * kMs, step == 0);
            job.range(rank, start, 10 * kMs, "step");
            job.hostCopy(rank, start + 10 * kUs, 50 * kUs, 1 << 20, true, start + 1 * kUs, 80 * kUs);
            job.launchedKernel(rank, start + 100 * kUs, (rank == 3 ? 5 : 3) * kMs, "gemm", 128, start + 90 * kUs,
                               5 * kUs);
            job.call(rank, start + 9 * kMs, 100 * kUs, "cudaDeviceSynchronize", store::ApiKind::synchronize);
        }
        const auto arrivals = [&](size_t members) { return std::vector<int64_t>(members, start + 6 * kMs); };
        job.collective(world, store::Op::allReduce, 8 << 20, arrivals(4), 1 * kMs);
        job.collective(node, store::Op::allGather, 1 << 16, {start + 7500 * kUs, start + 7500 * kUs}, 100 * kUs);
        job.message(world, 2, 3, 1 << 20, start + 8 * kMs, start + 8 * kMs, 100 * kUs);
    }
    job.loss("dropped", store::Severity::warning, 1);
    job.write(file);
    store::Database database(file.string(), store::OpenMode::readWrite);
    database.execute(
        "INSERT INTO device (id, host_id, ordinal, name, memory_bytes, multiprocessors, compute_capability) VALUES (0, "
        "0, 0, 'H100', 80000000000, 132, 90);UPDATE rank SET device_id = 0 WHERE rank < 2;INSERT INTO source_status "
        "(rank, source, state, message) VALUES (1, 'cupti', 'taken', 'by another')");
}

// What the verbs analyze, recommend, whatif, compare and export do with the file.
void useAll(const fs::path& file) {
    report::AnalyzeOptions options;
    options.workers = 1;
    options.overview = true;
    const report::Report report = analyze(file, options);
    report::renderText(report, {});
    report::renderJson(report);
    report::renderMarkdown(report);
    report::renderHtml(report);
    recommend::RecommendOptions advice;
    advice.workers = 1;
    recommend::renderAdviceText(recommend::recommend(file, advice), false);
    const job::Analysis analysis = job::readAnalysis(file, {1, {}, {}});
    if (analysis.replay.available())
        for (const char* change : {"balance", "algorithm:algo=tree", "buckets:mb=4", "place", "dp-ranks:count=8"}) {
            try {
                std::vector<std::unique_ptr<edits::Edit>> edits;
                edits.push_back(edits::parseEdit(change));
                edits::whatIf(analysis, edits);
            } catch (const edits::EditError&) {  // a change that this job cannot be asked for
            }
        }
    compare::renderSummary(compare::summarizeTrace(file, 1));
    store::TraceReader trace(file);
    std::ostringstream chrome, csv;
    exports::walkTrace(trace, *exports::chromeTrace(chrome, exports::aboutRun(trace)));
    exports::walkTrace(trace, *exports::csvTable(csv));
}

/// What the analysis says of the file, or why it refuses it.
std::string answer(const fs::path& file, unsigned workers) {
    report::AnalyzeOptions options;
    options.workers = workers;
    try {
        return report::renderJson(report::analyze(file, options));
    } catch (const store::Error& error) {
        return error.what();
    }
}

// What a sanitizer can find lies at the ends of the range; it is five times as slow.
#ifdef RANKSCOPE_ADDRESS_SANITIZER
const std::vector<const char*> kIds{"-1", "4611686018427387904"},
    kValues{"4611686018427387904", "-9223372036854775808"};
#else
const std::vector<const char*> kIds{"-1", "100000000", "4611686018427387904"},
    kValues{"NULL", "4611686018427387904", "-9223372036854775808", "'text'"};
#endif

enum Outcome : int { kUsed = 0, kRefused = 1, kRefusedWithoutHint = 2, kInternal = 3, kByThreads = 4 };

int outcomeOf(const fs::path& file) {
    try {
        if (answer(file, 1) != answer(file, 3)) return kByThreads;
        useAll(file);
        return kUsed;
    } catch (const store::Error& error) {
        return error.file().empty() || error.cause().empty() ? kRefusedWithoutHint : kRefused;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return kInternal;
    }
}

// The cases of one table, in a process of their own that may not take much memory; the case at work stands in shared
// memory.
struct Case {
    char text[256];
};

class HostileTrace : public testing::Test {
  protected:
    void SetUp() override {
        m_good = m_folder.path() / "good.db";
        writeJob(m_good);
    }

    // "" or what went wrong with the first of the cases that did.
    std::string sweep(const std::vector<std::string>& damages, int* refused = nullptr) const {
        auto* now = static_cast<Case*>(
            mmap(nullptr, sizeof(Case) + sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        int* const refusals = reinterpret_cast<int*>(now + 1);
        const pid_t child = fork();
        if (child == 0) {
#ifndef RANKSCOPE_ADDRESS_SANITIZER
            const rlimit memory{kMostBytes, kMostBytes};
            setrlimit(RLIMIT_AS, &memory);
#endif
            for (const std::string& damage : damages) {
                std::snprintf(now->text, sizeof now->text, "%s", damage.c_str());
                alarm(kMostSeconds);
                const fs::path file = m_folder.path() / "bad.db";
                fs::copy_file(m_good, file, fs::copy_options::overwrite_existing);
                try {
                    store::Database(file.string(), store::OpenMode::readWrite)
                        .execute("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; " + damage);
                } catch (const store::Error&) {
                    continue;  // the schema does not allow it
                }
                const int outcome = outcomeOf(file);
                *refusals += outcome == kRefused;
                if (outcome > kRefused) _exit(outcome);
            }
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        std::string wrong;
        if (WIFSIGNALED(status)) wrong = std::string(now->text) + ": ended by " + strsignal(WTERMSIG(status));
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
            wrong = std::string(now->text) + ": " +
                    (WEXITSTATUS(status) == kInternal    ? "an internal error"
                     : WEXITSTATUS(status) == kByThreads ? "another answer by three threads"
                                                         : "refused without file or cause");
        if (refused) *refused = *refusals;
        munmap(now, sizeof(Case) + sizeof(int));
        return wrong;
    }

    std::vector<std::string> tables() const {
        store::Database database(m_good.string(), store::OpenMode::readOnly);
        store::Statement select(database, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
        std::vector<std::string> names;
        while (select.step()) names.emplace_back(select.text(0));
        return names;
    }

    std::vector<std::string> columns(const std::string& table) const {
        store::Database database(m_good.string(), store::OpenMode::readOnly);
        store::Statement select(database, "SELECT name FROM pragma_table_info('" + table + "')");
        std::vector<std::string> names;
        while (select.step()) names.emplace_back(select.text(0));
        return names;
    }

    static constexpr rlim_t kMostBytes = rlim_t{1} << 30;  // address space; the whole job takes some MiB
    static constexpr unsigned kMostSeconds = 60;           // of a case that takes milliseconds

    TemporaryFolder m_folder;
    fs::path m_good;
};

TEST_F(HostileTrace, TheWholeFileIsUsed) {
    EXPECT_EQ(outcomeOf(m_good), kUsed);
}

TEST_F(HostileTrace, NoValueOfAnyColumnCrashesAVerbOrTakesMemory) {
    for (const std::string& table : tables()) {
        std::vector<std::string> damages = {"DELETE FROM " + table};
        for (const std::string& column : columns(table)) {
            const bool names = column.ends_with("id") || column.ends_with("rank");
            for (const char* value : names ? kIds : kValues)
                damages.push_back("UPDATE OR IGNORE " + table + " SET " + column + " = " + value);
        }
        EXPECT_EQ(sweep(damages), "");
    }
}

TEST_F(HostileTrace, WhatNamesNothingIsRefused) {
    const std::vector<std::string> damages = {"DELETE FROM communicator_member",
                                              "UPDATE communicator_member SET communicator_id = communicator_id + 90",
                                              "DELETE FROM communicator",
                                              "DELETE FROM string",
                                              "UPDATE kernel SET name_id = 5000",
                                              "UPDATE kernel SET name_id = 4294967297",
                                              "UPDATE api_call SET name_id = -7",
                                              "UPDATE nvtx SET domain_id = 77",
                                              "INSERT INTO string (id, text) VALUES (40000000, 'x')",
                                              "INSERT INTO string (id, text) VALUES (4611686018427387904, 'x')",
                                              "UPDATE p2p SET src_rank = 9",
                                              "UPDATE collective SET communicator_id = 9"};
    for (const std::string& damage : damages) {
        int refused = 0;
        EXPECT_EQ(sweep({damage}, &refused), "");
        EXPECT_EQ(refused, 1) << damage;
    }
}

TEST_F(HostileTrace, RowsThatAreInNoRangeOfIdsAreReadByThreadsToo) {
    // An id so large makes several ranges of them, each read by a thread.
    const std::string severalRanges =
        "UPDATE collective_member SET collective_id = 1 << 62 WHERE collective_id = (SELECT max(id) FROM collective); "
        "UPDATE collective SET id = 1 << 62 WHERE id = (SELECT max(id) FROM collective); ";
    EXPECT_EQ(sweep({severalRanges}), "");
    int refused = 0;
    EXPECT_EQ(sweep({severalRanges + "UPDATE collective_member SET collective_id = 'text' WHERE rank = 0 AND "
                                     "collective_id = (SELECT min(id) FROM collective)"},
                    &refused),
              "");
    EXPECT_EQ(refused, 1);
}

TEST_F(HostileTrace, NothingInTheFileIsExecuted) {
    const std::string endless =
        "SELECT (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c)";
    int refused = 0;
    EXPECT_EQ(sweep({"CREATE TRIGGER t1 BEFORE INSERT ON finding BEGIN " + endless + "; END",
                     "CREATE TRIGGER t2 BEFORE DELETE ON finding BEGIN " + endless + "; END"},
                    &refused),
              "");
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(sweep({"ALTER TABLE loss RENAME TO lost; CREATE VIEW loss AS " + endless}, &refused), "");
    EXPECT_EQ(refused, 1);
}

}  // namespace
}  // namespace rankscope::test
