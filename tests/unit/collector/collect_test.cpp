// SPDX-License-Identifier: Apache-2.0
#include "collector/collect.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>

#include "collector/store/error.h"
#include "collector/store/reader.h"
#include "tests/unit/collector/training_job.h"

namespace rankscope {
namespace {

using store::TraceReader;
using test::TemporaryFolder;
using test::TrainingJob;

TraceReader collected(const std::filesystem::path& run) {
    return TraceReader(collector::collect(run).file);
}

bool hasLoss(TraceReader& trace, const std::string& kind) {
    for (const store::Loss& loss : trace.all<store::Loss>()) {
        if (loss.kind == kind) return true;
    }
    return false;
}

/// Everything a table holds, as text.
std::string dump(const std::filesystem::path& file) {
    TraceReader trace(file);
    std::string text;
    store::Statement tables(trace.database(), "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    while (tables.step()) {
        const std::string table(tables.text(0));
        store::Statement columns(
            trace.database(),
            "SELECT group_concat('quote(' || name || ')', '||'',''||') FROM pragma_table_info('" + table + "')");
        columns.step();
        store::Statement rows(trace.database(), "SELECT " + std::string(columns.text(0)) + " FROM " + table);
        while (rows.step()) text += table + ": " + std::string(rows.text(0)) + "\n";
    }
    return text;
}

TEST(Collect, TellsWaitAndTransferOfACollectiveApart) {
    const TemporaryFolder run;
    const TrainingJob job;
    job.write(run.path());
    TraceReader trace = collected(run.path());

    const auto collectives = trace.all<store::Collective>();
    ASSERT_EQ(collectives.size(), static_cast<size_t>(job.steps));
    for (const store::Collective& collective : collectives) {
        EXPECT_TRUE(collective.complete);
        EXPECT_EQ(collective.op, store::Op::allReduce);
        EXPECT_EQ(collective.bytes, 4 << 20);
        EXPECT_EQ(collective.lastRank, job.slowRank);
        EXPECT_EQ(collective.transferNs, job.transferNs);
    }
    for (const store::CollectiveMember& member : trace.all<store::CollectiveMember>()) {
        EXPECT_EQ(member.waitNs, member.rank == job.slowRank ? 0 : job.slowComputeNs - job.computeNs);
        EXPECT_EQ(member.transferNs, job.transferNs);
    }
}

TEST(Collect, WhatRanksStoodInIsInTheTraceAndWhatIsNoStackIsALoss) {
    const TemporaryFolder run;
    const TrainingJob job;
    job.write(run.path());
    const std::string captureOfOne = job.fileOf(run.path(), 1).filename().string();
    const auto write = [&](const char* name, const std::string& capture, const char* rest) {
        std::filesystem::create_directory(run.path() / "stacks");
        std::ofstream(run.path() / "stacks" / name)
            << "rankscope stacks 1\nrank 0\npid 1000\ncapture " << capture << '\n'
            << rest;
    };
    write("b.1.txt", captureOfOne,
          "read_unix_ns 1700000002000000000\nstalled_ns 9\n\nthread 7 S t\n  late+0x1 (x)\n\nend\n");
    write("a.2.txt", captureOfOne,
          "read_unix_ns 1700000001000000000\nstalled_ns 5\nnote no luck\n\nthread 7 D t\n  f+0x1 (x)\n  g "
          "(y)\n\npython 7 Main\n  h (a.py:1)\n\nend\n");
    write("c.txt", "other.cap", "thread 1 S t\n\nend\n");
    write("d.txt", captureOfOne, "read_unix_ns 1700000003000000000\nthread 8 S cut\n  f");
    std::ofstream(run.path() / "stacks" / "e.txt") << "not so";
    std::ofstream(run.path() / "stacks" / "f.txt.part") << "not read";
    write("g.txt", captureOfOne, "read_unix_ns 1700000003000000000\n\nthread 7 S t\n\nend\n");
    std::filesystem::resize_file(run.path() / "stacks" / "g.txt", 33 << 20);
    TraceReader trace = collected(run.path());
    const auto rows = trace.all<store::ThreadStack>();
    ASSERT_EQ(rows.size(), 4u);
    for (const store::ThreadStack& row : rows) EXPECT_EQ(row.rank, 1);
    EXPECT_EQ(rows[0].frames, "f+0x1 (x)\ng (y)");
    EXPECT_EQ(rows[0].state, "D");
    EXPECT_EQ(rows[0].stalledNs, 5);
    EXPECT_EQ(rows[1].language, "python");
    EXPECT_FALSE(rows[1].state);
    EXPECT_EQ((std::vector{rows[0].reading, rows[1].reading, rows[2].reading, rows[3].reading}),
              (std::vector{1, 1, 2, 3}));
    EXPECT_EQ(*rows[2].readNs - *rows[0].readNs, 1'000'000'000);
    std::map<store::Severity, int> losses;
    bool saysTooLarge = false;
    for (const store::Loss& loss : trace.all<store::Loss>())
        if (loss.kind == "stacks") {
            ++losses[loss.severity];
            saysTooLarge = saysTooLarge || loss.message.find("g.txt is too large (33 MiB") != std::string::npos;
        }
    EXPECT_TRUE(saysTooLarge);
    EXPECT_EQ(losses[store::Severity::info], 1);
    EXPECT_EQ(losses[store::Severity::warning], 3) << "cut off, none, and too large";
}

TEST(Collect, WhenStacksWereReadIsToldByTheClockOfTheirHost) {
    const TemporaryFolder run;
    TrainingJob job;
    job.ranksPerHost = 2;
    job.hostOffsetNs = 5'000'000'000;  // of the recorded clock; the wall clocks agree that all began at one moment
    job.write(run.path());
    std::filesystem::create_directory(run.path() / "stacks");
    for (const int rank : {0, 3})
        std::ofstream(run.path() / "stacks" / (std::to_string(rank) + ".txt"))
            << "rankscope stacks 1\npid 1\ncapture " << job.fileOf(run.path(), rank).filename().string()
            << "\nread_unix_ns 1700000002000000000\n\nthread 7 S t\n\nend\n";
    const auto rows = collected(run.path()).all<store::ThreadStack>();
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(*rows[0].readNs - *rows[1].readNs, job.hostOffsetNs);
}

TEST(Collect, OfAPartOfTheTimeCallsStillMeetTheirPeers) {
    const TemporaryFolder run;
    TrainingJob job;
    job.write(run.path());
    collector::CollectOptions options;
    // Ranks may have begun at different calls: the second step's are the first that all still have.
    options.part = {job.originNs + job.stepNs() + job.gapNs / 2, job.originNs + 4 * job.stepNs()};
    collector::collect(run.path(), options);
    TraceReader trace(run.path());
    const auto collectives = trace.all<store::Collective>();
    ASSERT_FALSE(collectives.empty());
    for (const store::Collective& collective : collectives) {
        EXPECT_TRUE(collective.complete) << collective.seq;
        EXPECT_GE(collective.seq, 1);
        EXPECT_LE(collective.seq, 3);
        EXPECT_EQ(collective.lastRank, job.slowRank);
    }
    for (const store::Loss& loss : trace.all<store::Loss>()) EXPECT_NE(loss.kind, "unmatched_collective");
}

/// A run of which so much of each capture file has been written.
void writeBegin(const std::filesystem::path& whole, const std::filesystem::path& run, double share) {
    std::filesystem::create_directories(run / "capture");
    for (const auto& entry : std::filesystem::directory_iterator(whole / "capture")) {
        std::ifstream in(entry.path(), std::ios::binary);
        const std::string content((std::istreambuf_iterator<char>(in)), {});
        const auto bytes = static_cast<size_t>(4096 + share * static_cast<double>(content.size() - 4096));
        const std::filesystem::path file = run / "capture" / entry.path().filename();
        const bool isThere = std::filesystem::exists(file);
        std::fstream out(file, std::ios::binary | std::ios::out | (isThere ? std::ios::in : std::ios::trunc));
        out << content.substr(0, bytes);  // over what is there: it is the same file, which grows
    }
}

/// Everything, but for where in which file a loss is.
std::string dumpWithoutPlaces(const std::filesystem::path& file) {
    std::istringstream rows(dump(file));
    std::string text;
    for (std::string row; std::getline(rows, row);)
        if (!row.starts_with("loss: ")) text += row + "\n";
    TraceReader trace(file);
    for (const store::Loss& loss : trace.all<store::Loss>())
        text += loss.kind + " " + std::to_string(static_cast<int>(loss.severity)) + " " + std::to_string(loss.count) +
                " " + std::to_string(loss.rank.value_or(-1)) + "\n";
    return text;
}

/// `damaged`: breaks a block of one file that comes while it is followed.
void expectFollowedLikeFromTheBeginning(bool damaged) {
    const TemporaryFolder whole, run, scratch;
    TrainingJob job;
    job.steps = 2000;
    job.computeNs = 1'000'000'000;
    job.slowComputeNs = 1'500'000'000;
    job.write(whole.path());
    if (damaged) {
        const std::filesystem::path file = job.fileOf(whole.path(), 1);
        std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
        out.seekp(static_cast<std::streamoff>(std::filesystem::file_size(file) / 2));
        out << "damage";
    }
    const auto followed = collector::followCaptures(scratch.path() / "copies");
    const std::filesystem::path files[] = {scratch.path() / "followed.db", scratch.path() / "from_the_beginning.db"};
    for (const double share : {0.2, 0.25, 0.4, 0.41, 0.7, 0.9, 1.0}) {
        writeBegin(whole.path(), run.path(), share);
        for (const auto& file : files) {
            collector::CollectOptions options;
            const int64_t untilNs = job.originNs + static_cast<int64_t>(share * job.steps) * job.stepNs();
            options.part = {untilNs - 400 * job.stepNs(), untilNs};
            options.output = file;
            options.followed = file == files[0] ? followed.get() : nullptr;
            collector::collect(run.path(), options);
        }
        ASSERT_FALSE(TraceReader(files[0]).all<store::Collective>().empty()) << share;
        EXPECT_EQ(dumpWithoutPlaces(files[0]), dumpWithoutPlaces(files[1])) << share;
    }
    uintmax_t copied = 0, written = 0;
    for (int rank = 0; rank < job.ranks; ++rank) {
        const std::filesystem::path file = job.fileOf(run.path(), rank);
        const std::filesystem::path copy = scratch.path() / "copies" / "0" / "capture" / file.filename();
        EXPECT_EQ(std::filesystem::exists(copy), !damaged || rank != 1) << rank;
        if (!std::filesystem::exists(copy)) continue;
        copied += std::filesystem::file_size(copy);
        written += std::filesystem::file_size(file);
    }
    EXPECT_LT(copied, written * 3 / 4);
}

TEST(Collect, WhatIsFollowedIsReadAsFromTheBeginning) {
    expectFollowedLikeFromTheBeginning(false);
}

TEST(Collect, WhatIsDamagedWhileItIsFollowedIsReadAsFromTheBeginning) {
    expectFollowedLikeFromTheBeginning(true);
}

TEST(Collect, HowDevicesDidIsToldByTheClockOfTheirHost) {
    const TemporaryFolder run;
    TrainingJob job;
    job.write(run.path());
    std::filesystem::create_directory(run.path() / "health");
    const auto write = [&](const std::string& name, int rank, const std::string& rest) {
        std::ofstream(run.path() / "health" / name)
            << "rankscope health 1\nhost node0\nprocess " << job.fileOf(run.path(), rank).filename().string()
            << " 0 0000:3b:00.0\n"
            << rest;
    };
    write("a.txt", 1,
          "device 0000:3b:00.0 1700000002000000000 1 sm_mhz=1200 clocks_events=4\n"
          "device 0000:3b:00.0 1700000001000000000 2 sm_mhz=1980\ndevice 0000:5e:00.0 1 1 sm_mhz=7\n"
          "port mlx5_0/1 1700000001000000000 errors=3\n");
    write("b.txt", 2,
          "port mlx5_0/1 1700000001000000000 errors=3\nport mlx5_0/1 1700000002000000000 errors=4\nnote no\n");
    TraceReader trace = collected(run.path());
    const auto rows = trace.all<store::DeviceHealth>();
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].rank, 1);
    EXPECT_EQ(rows[0].smMhz, 1980);
    EXPECT_EQ(rows[0].readings, 2);
    EXPECT_FALSE(rows[0].clocksEvents);
    EXPECT_EQ(rows[1].clocksEvents, 4);
    EXPECT_EQ(*rows[1].timeNs - *rows[0].timeNs, 1'000'000'000);
    const auto ports = trace.all<store::PortCounter>();
    ASSERT_EQ(ports.size(), 2u) << "each wrapper of a host tells of its ports: those of one count";
    EXPECT_EQ(ports[1].errors, 4);
}

TEST(Collect, TiesEveryCallToItsKernelAndMarksIt) {
    const TemporaryFolder run;
    const TrainingJob job;
    job.write(run.path());
    TraceReader trace = collected(run.path());

    int calls = 0;
    trace.forEach<store::NcclCall>(1, [&](const store::NcclCall& call) {
        ++calls;
        ASSERT_TRUE(call.kernelId);
        store::Kernel kernel;
        ASSERT_TRUE(trace.find(*call.kernelId, kernel));
        EXPECT_EQ(kernel.rank, 1);
        EXPECT_EQ(kernel.nccl, store::NcclKernel::byCall);
        EXPECT_TRUE(call.evidence & store::evidence::kExternalCorrelation);
    });
    EXPECT_EQ(calls, job.steps);
}

TEST(Collect, StepsFollowTheNvtxRangeAndTileTheRank) {
    const TemporaryFolder run;
    const TrainingJob job;
    job.write(run.path());
    TraceReader trace = collected(run.path());

    EXPECT_EQ(trace.meta("step_source", ""), "nvtx:train_step");
    const auto steps = trace.all<store::Step>();
    ASSERT_EQ(steps.size(), static_cast<size_t>(job.ranks * job.steps));
    for (size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(steps[i].durNs, job.stepNs());
        if (i == 0 || steps[i].rank != steps[i - 1].rank) continue;
        EXPECT_EQ(steps[i].startNs, steps[i - 1].startNs + steps[i - 1].durNs);
    }
    for (const store::Collective& collective : trace.all<store::Collective>())
        EXPECT_EQ(collective.step, static_cast<int32_t>(collective.seq));
}

TEST(Collect, WithoutRangesStepsComeFromThePeriodOfTheCalls) {
    const TemporaryFolder run;
    TrainingJob job;
    job.stepRanges = false;
    job.write(run.path());
    TraceReader trace = collected(run.path());

    EXPECT_EQ(trace.meta("step_source", ""), "period");
    EXPECT_EQ(trace.all<store::Step>().size(), static_cast<size_t>(job.ranks * job.steps));
}

TEST(Collect, GivesTheSameContentWhateverTheThreadsAndWhetherRanksAreReadTwice) {
    const TemporaryFolder run;
    const TrainingJob job;
    job.write(run.path());
    collector::CollectOptions one;
    one.threads = 1;
    one.output = run.path() / "one.db";
    collector::CollectOptions many;
    many.threads = 4;
    many.keepBytes = 0;
    many.output = run.path() / "many.db";
    collector::collect(run.path(), one);
    collector::collect(run.path(), many);
    EXPECT_EQ(dump(one.output), dump(many.output));
}

TEST(Collect, JoinsFoldersOfSeveralHostsWhereverTheyLie) {
    const TemporaryFolder run;
    TrainingJob job;
    job.ranksPerHost = 2;
    for (int rank = 0; rank < job.ranks; ++rank) job.writeRank(run.path() / job.hostOf(rank), rank);
    TraceReader trace = collected(run.path());

    EXPECT_EQ(trace.all<store::Host>().size(), 2u);
    EXPECT_EQ(trace.all<store::Communicator>().at(0).nodeCount, 2);
    EXPECT_EQ(trace.all<store::Rank>().size(), 4u);
    for (const store::Collective& collective : trace.all<store::Collective>()) EXPECT_TRUE(collective.complete);
}

TEST(Collect, UndoesOffsetAndDriftOfAnotherHostsClock) {
    const TemporaryFolder run;
    TrainingJob job;
    job.ranksPerHost = 2;
    job.slowRank = 3;
    job.steps = 40;
    job.hostOffsetNs = 7'000'000;
    job.hostDriftPpb = 20'000;
    job.write(run.path());
    TraceReader trace = collected(run.path());

    const auto models = trace.all<store::ClockModel>();
    ASSERT_EQ(models.size(), 2u);
    EXPECT_EQ(models[0].method, "reference");
    EXPECT_EQ(models[1].method, "collectives");
    EXPECT_NEAR(models[1].driftPpb, -20'000, 20);
    EXPECT_LE(models[1].boundNs, 1'000);
    for (const store::CollectiveMember& member : trace.all<store::CollectiveMember>()) {
        EXPECT_NEAR(*member.waitNs, member.rank == job.slowRank ? 0 : job.slowComputeNs - job.computeNs, 2'000);
    }
    for (const store::Collective& collective : trace.all<store::Collective>()) EXPECT_EQ(collective.lastRank, 3);
}

TEST(Collect, NamesTheRankThatLeftNoFile) {
    const TemporaryFolder run;
    const TrainingJob job;
    for (int rank = 0; rank < job.ranks; ++rank) {
        if (rank != 1) job.writeRank(run.path(), rank);
    }
    TraceReader trace = collected(run.path());

    EXPECT_EQ(trace.all<store::Rank>().at(1).state, store::RankState::missing);
    EXPECT_TRUE(hasLoss(trace, "missing_rank"));
    EXPECT_TRUE(hasLoss(trace, "unmatched_collective"));
    for (const store::Collective& collective : trace.all<store::Collective>()) {
        EXPECT_FALSE(collective.complete);
        EXPECT_FALSE(collective.lastRank);
    }
}

TEST(Collect, NamesTheRankThatVanished) {
    const TemporaryFolder run;
    const TrainingJob job;
    for (int rank = 0; rank < job.ranks; ++rank) job.writeRank(run.path(), rank, rank == 3);
    TraceReader trace = collected(run.path());

    EXPECT_EQ(trace.all<store::Rank>().at(3).state, store::RankState::died);
    EXPECT_EQ(trace.all<store::Process>().at(3).endKind, "vanished");
    EXPECT_EQ(trace.all<store::Rank>().at(0).state, store::RankState::complete);
    EXPECT_TRUE(hasLoss(trace, "died"));
}

TEST(Collect, AFileThatLostItsEndIsNotCalledADeath) {
    const TemporaryFolder run;
    TrainingJob job;
    job.write(run.path());
    // Its last block holds the farewell; no ring file tells of a kill.
    std::filesystem::resize_file(job.fileOf(run.path(), 1), std::filesystem::file_size(job.fileOf(run.path(), 1)) - 1);
    TraceReader trace = collected(run.path());

    EXPECT_EQ(trace.all<store::Rank>().at(1).state, store::RankState::unknown);
    EXPECT_EQ(trace.all<store::Process>().at(1).endKind, "unknown");
    EXPECT_TRUE(hasLoss(trace, "unknown_end"));
    EXPECT_TRUE(hasLoss(trace, "torn_tail"));
    EXPECT_FALSE(hasLoss(trace, "died"));
    EXPECT_EQ(trace.database().integer("SELECT count(*) FROM loss WHERE kind IN ('torn_tail', 'bad_block')"), 1)
        << "one torn tail, told once";
    EXPECT_EQ(trace.database().integer("SELECT count FROM loss WHERE kind = 'torn_tail'"), 1);
}

/// The first field of /proc/self/stat that tells when this process began.
std::string ownStartTicks() {
    std::string stat;
    std::getline(std::ifstream("/proc/self/stat"), stat);
    std::istringstream fields(stat.substr(stat.rfind(')') + 1));
    std::string field;
    for (int number = 3; number <= 22; ++number) fields >> field;
    return field;
}

TEST(Collect, ARankThatStillRunsIsSaidToRun) {
    const TemporaryFolder run;
    std::string bootId;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), bootId);
    const auto writeLiving = [&](int rank, const std::string& ticks) {
        const std::filesystem::path path =
            run.path() / "capture" / ("node0." + std::to_string(getpid()) + "." + ticks + ".cap");
        test::CaptureFile file(path, {rank, 2, "node0", getpid(), 0, bootId});
        file.stream(0, 7, 0);
        file.kernel("gemm", 0, 1'000'000 + rank, 500, 1);
        test::leaveRings(path);
    };
    writeLiving(0, ownStartTicks());
    writeLiving(1, std::to_string(std::stoll(ownStartTicks()) - 1));  // an earlier process had the same id
    TraceReader trace = collected(run.path());

    EXPECT_EQ(trace.all<store::Rank>().at(0).state, store::RankState::running);
    EXPECT_EQ(trace.all<store::Rank>().at(1).state, store::RankState::died);
    EXPECT_EQ(trace.database().integer("SELECT count(*) FROM loss WHERE kind = 'running' AND rank = 0"), 1);
    EXPECT_EQ(trace.database().integer("SELECT count(*) FROM loss WHERE kind = 'died' AND rank = 1"), 1);
}

/// Both ranks run; the device has come to the end of two all-reduces, and one rank has called a fourth already.
/// `lostOne`: the first kernel of rank 1 is missing.
TraceReader whileTheyRun(const TemporaryFolder& run, bool lostOne) {
    std::string bootId;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), bootId);
    for (int rank = 0; rank < 2; ++rank) {
        const std::filesystem::path path =
            run.path() / "capture" /
            ("node" + std::to_string(rank) + "." + std::to_string(getpid()) + "." + ownStartTicks() + ".cap");
        test::CaptureFile file(path, {rank, 2, "node0", getpid(), 0, bootId});
        file.stream(0, 7, 0);
        file.communicator(1, 77, rank, 2);
        for (int i = 0; i < (rank == 0 ? 4 : 3); ++i) {
            const int64_t startNs = 1'000'000 * (i + 1);
            file.ncclCall(capture::NcclOp::allReduce, 1, 100, startNs, static_cast<uint64_t>(i + 1), 0);
            if (i > 1 || (lostOne && rank == 1 && i == 0)) continue;
            const auto correlation = static_cast<uint32_t>(40 + i);
            file.kernel("ncclDevKernel_AllReduce", 0, startNs + 20'000, 500, correlation, startNs + 500);
            file.external(correlation, static_cast<uint64_t>(i + 1));
        }
        test::leaveRings(path);
    }
    return collected(run.path());
}

TEST(Collect, CallsThatTheDeviceOfARunningRankHasNotComeToAreNotMissing) {
    const TemporaryFolder run, torn;
    TraceReader trace = whileTheyRun(run, false);
    ASSERT_EQ(trace.all<store::Rank>().at(1).state, store::RankState::running);
    EXPECT_EQ(trace.all<store::Collective>().size(), 4u);
    EXPECT_FALSE(hasLoss(trace, "kernel_missing"));
    EXPECT_FALSE(hasLoss(trace, "unmatched_collective"));
    TraceReader other = whileTheyRun(torn, true);
    EXPECT_TRUE(hasLoss(other, "kernel_missing"));
}

TEST(Collect, AProcessThatBecameAnotherHasNotDiedAndOneThatFailedToHasNoEnd) {
    const TemporaryFolder run;
    constexpr uint16_t kExec = 4, kExecFailed = 5;
    for (int rank = 0; rank < 2; ++rank) {
        const std::filesystem::path path = run.path() / "capture" / ("node0." + std::to_string(1000 + rank) + ".1.cap");
        test::CaptureFile file(path, {rank, 2, "node0", 1000 + rank, 0});
        file.stream(0, 7, 0);
        file.kernel("gemm", 0, 1'000'000, 500, 1);
        file.end(2'000'000, kExec, -1);
        if (rank == 1) file.end(3'000'000, kExecFailed, -1);
        test::leaveRings(path);
    }
    TraceReader trace = collected(run.path());

    EXPECT_EQ(trace.all<store::Process>().at(0).endKind, "exec");
    EXPECT_EQ(trace.all<store::Rank>().at(0).state, store::RankState::complete);
    EXPECT_EQ(trace.all<store::Process>().at(1).endKind, "vanished");
}

TEST(Collect, ALossThatIsToldAgainAndAgainIsOneRow) {
    const TemporaryFolder run;
    {
        test::CaptureFile file(run.path() / "capture" / "node0.1000.1.cap", {0, 1, "node0", 1000, 0});
        file.stream(0, 7, 0);
        file.kernel("gemm", 0, 1'000'000, 500, 1);
        for (int64_t i = 1; i <= 4; ++i) {
            file.add(
                capture::LossRecord{{capture::RecordType::loss, 1, static_cast<uint16_t>(capture::LossKind::ioError)},
                                    capture::Source::hooks,
                                    {},
                                    i,
                                    i,
                                    10});
            file.add(
                capture::LossRecord{{capture::RecordType::loss, 1, static_cast<uint16_t>(capture::LossKind::ioError)},
                                    capture::Source::cupti,
                                    {},
                                    i,
                                    i,
                                    1});
        }
        file.end(2'000'000);
    }
    TraceReader trace = collected(run.path());

    EXPECT_EQ(trace.database().integer("SELECT count(*) FROM loss WHERE kind = 'io_error'"), 2);
    EXPECT_EQ(trace.database().integer("SELECT count FROM loss WHERE kind = 'io_error' AND source = 'hooks'"), 40);
    EXPECT_EQ(trace.database().integer("SELECT count FROM loss WHERE kind = 'io_error' AND source = 'cupti'"), 4);
}

TEST(Collect, KeepsTheStepsOfAJobWhoseRanksAllDied) {
    const TemporaryFolder run;
    const TrainingJob job;
    for (int rank = 0; rank < job.ranks; ++rank) job.writeRank(run.path(), rank, true);
    TraceReader trace = collected(run.path());

    EXPECT_EQ(trace.meta("step_source", ""), "nvtx:train_step");
    EXPECT_EQ(trace.all<store::Step>().size(), static_cast<size_t>(job.ranks * job.steps));
}

TEST(Collect, ARankWhoseMarksAreLostHasTheStepsOfItsPeersAsFarAsItWasRecorded) {
    const TemporaryFolder run;
    TrainingJob job;
    for (int rank : {0, 2, 3}) job.writeRank(run.path(), rank);
    TrainingJob unmarked = job;
    unmarked.stepRanges = false;
    unmarked.steps = 3;
    unmarked.writeRank(run.path(), 1, true);
    TraceReader trace = collected(run.path());

    EXPECT_EQ(trace.meta("step_source", ""), "nvtx:train_step");
    std::map<int, std::vector<store::Step>> steps;
    for (const store::Step& step : trace.all<store::Step>()) steps[step.rank].push_back(step);
    for (int rank : {0, 2, 3}) EXPECT_EQ(steps[rank].size(), 5u);
    ASSERT_EQ(steps[1].size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(steps[1][i].startNs, steps[0][i].startNs);
    EXPECT_TRUE(hasLoss(trace, "step_marks"));
}

TEST(Collect, NamesTheRankThatStoppedFirstWhenSeveralDied) {
    const TemporaryFolder run;
    for (int rank = 0; rank < 3; ++rank) {
        const std::filesystem::path path = run.path() / "capture" / ("r" + std::to_string(rank) + ".cap");
        test::CaptureFile file(path, {rank, 3, "node0", 50 + rank, 0});
        test::leaveRings(path);
        file.stream(0, 7, 0);
        file.kernel("k", 0, 100, 10);
        file.kernel("k", 0, rank == 1 ? 1'000 : 5'000'000 + rank, 10);
    }
    TraceReader trace = collected(run.path());
    std::vector<std::optional<int64_t>> first;
    for (const store::Loss& loss : trace.all<store::Loss>())
        if (loss.kind == "first_death") first.push_back(loss.rank);
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(first[0], 1);
}

std::vector<store::Loss> lossesOf(TraceReader& trace, const std::string& kind) {
    std::vector<store::Loss> found;
    for (const store::Loss& loss : trace.all<store::Loss>())
        if (loss.kind == kind) found.push_back(loss);
    return found;
}

TEST(Collect, NamesTheRankThatExitedWithAStatusAndNotThePeersThatWaitedForIt) {
    const TemporaryFolder run;
    // Rank 3 runs out of memory in the fourth step and ends by itself, after a while; its peers call the collective
    // that it never comes to and are killed.
    TrainingJob victims;
    for (int rank : {0, 1, 2}) victims.writeRank(run.path(), rank, true);
    TrainingJob culprit;
    culprit.steps = 3;
    culprit.exitStatus = 3;
    culprit.gapNs = 100'000;
    culprit.writeRank(run.path(), 3);
    TraceReader trace = collected(run.path());
    const std::vector<store::Loss> first = lossesOf(trace, "first_death"), exits = lossesOf(trace, "failed_exit");
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(first[0].rank, 3);
    EXPECT_NE(first[0].message.find("ended with exit status 3 before collective 3 of communicator 1"),
              std::string::npos)
        << first[0].message;
    ASSERT_EQ(exits.size(), 1u);
    EXPECT_EQ(exits[0].rank, 3);
    EXPECT_EQ(lossesOf(trace, "died").size(), 3u);
}

TEST(Collect, NamesTheKilledRankWhenItsPeersThenEndByAStatus) {
    const TemporaryFolder run;
    TrainingJob victims;
    victims.exitStatus = 1;
    for (int rank : {0, 1, 2}) victims.writeRank(run.path(), rank);
    TrainingJob killed;
    killed.steps = 3;
    killed.writeRank(run.path(), 3, true);
    TraceReader trace = collected(run.path());
    const std::vector<store::Loss> first = lossesOf(trace, "first_death"), exits = lossesOf(trace, "failed_exit");
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(first[0].rank, 3);
    ASSERT_EQ(exits.size(), 1u);
    EXPECT_EQ(exits[0].count, 3);
    EXPECT_EQ(exits[0].rank, std::nullopt);
}

TEST(Collect, NamesTheRankWhoseCollectiveIsNotThatOfItsPeers) {
    const TemporaryFolder run;
    TrainingJob job;
    for (int rank : {0, 1, 3}) job.writeRank(run.path(), rank, true);
    TrainingJob other = job;
    other.reducedElements = 1 << 19;
    other.writeRank(run.path(), 2, true);
    TraceReader trace = collected(run.path());
    const std::vector<store::Loss> first = lossesOf(trace, "first_death"),
                                   mismatches = lossesOf(trace, "unmatched_collective");
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(first[0].rank, 2);
    ASSERT_FALSE(mismatches.empty());
    EXPECT_NE(mismatches[0].message.find("rank 2 called all_reduce of"), std::string::npos) << mismatches[0].message;
}

TEST(Collect, NamesNoRankThatWasOnlySilentBeforeAnotherOneExited) {
    const TemporaryFolder run;
    for (int rank = 0; rank < 2; ++rank) {  // nothing tells who waited for whom
        const std::filesystem::path path = run.path() / "capture" / ("r" + std::to_string(rank) + ".cap");
        test::CaptureFile file(path, {rank, 2, "node0", 50 + rank, 0});
        file.stream(0, 7, 0);
        file.kernel("k", 0, 100, 10);
        file.kernel("k", 0, 1'000, 10);
        if (rank == 0)
            test::leaveRings(path);
        else
            file.end(9'000'000, 1, 1);
    }
    TraceReader trace = collected(run.path());
    const std::vector<store::Loss> first = lossesOf(trace, "first_death");
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(first[0].rank, std::nullopt);
    EXPECT_NE(first[0].message.find("cannot be told"), std::string::npos) << first[0].message;
}

TEST(Collect, AJobThatHungBeforeItWasEndedFromOutsideTellsWhoWasMissing) {
    const TemporaryFolder run;
    std::ofstream(run.path() / "run.json") << R"({"exit_status": 143})";  // 128 + SIGTERM
    TrainingJob waiting;
    for (int rank : {0, 1, 2}) waiting.writeRank(run.path(), rank, true);
    TrainingJob gone;
    gone.steps = 3;
    gone.writeRank(run.path(), 3, true);
    TraceReader trace = collected(run.path());
    const std::vector<store::Loss> first = lossesOf(trace, "first_death");
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(first[0].rank, std::nullopt);
    EXPECT_NE(first[0].message.find("ended by SIGTERM"), std::string::npos) << first[0].message;
    EXPECT_NE(first[0].message.find("look at rank 3: it had not come to collective 3"), std::string::npos)
        << first[0].message;
}

TEST(Collect, BlamesNoRankOfAJobThatWasEndedFromOutside) {
    for (const int signal : {SIGTERM, SIGSEGV}) {
        const TemporaryFolder run;
        for (int rank = 0; rank < 2; ++rank) {
            test::CaptureFile file(run.path() / "capture" / ("r" + std::to_string(rank) + ".cap"),
                                   {rank, 2, "node0", 50 + rank, 0});
            file.stream(0, 7, 0);
            file.kernel("k", 0, 100, 10);
            file.end(9'000'000 + 500'000 * rank, 3, signal);
        }
        TraceReader trace = collected(run.path());
        const std::vector<store::Loss> first = lossesOf(trace, "first_death");
        ASSERT_EQ(first.size(), 1u);
        EXPECT_EQ(first[0].message.find("ended from outside") != std::string::npos, signal == SIGTERM)
            << first[0].message;
        EXPECT_EQ(first[0].rank.has_value(), signal == SIGSEGV);
    }
}

TEST(Collect, BlamesNoRankThatItsLauncherEndedBecauseSomebodyEndedTheJob) {
    // torchrun ends its ranks by SIGTERM, whatever it was sent, and itself with a status of its own.
    for (const bool wasStopped : {true, false}) {
        const TemporaryFolder run;
        std::ofstream(run.path() / "run.json")
            << (wasStopped ? R"({"exit_status": 1, "stop_signal": 2})" : R"({"exit_status": 1})");
        for (int rank = 0; rank < 2; ++rank) {
            test::CaptureFile file(run.path() / "capture" / ("r" + std::to_string(rank) + ".cap"),
                                   {rank, 2, "node0", 50 + rank, 0});
            file.stream(0, 7, 0);
            file.kernel("k", 0, 100, 10);
            file.end(9'000'000 + 500'000 * rank, 3, wasStopped && rank == 1 ? SIGHUP : SIGTERM);
        }
        TraceReader trace = collected(run.path());
        const std::vector<store::Loss> first = lossesOf(trace, "first_death");
        ASSERT_EQ(first.size(), 1u);
        EXPECT_EQ(first[0].message.find("ended by SIGINT") != std::string::npos, wasStopped) << first[0].message;
        EXPECT_FALSE(first[0].rank.has_value()) << first[0].message;
    }
}

TEST(Collect, TakesTheLastAttemptOfARestartedRank) {
    const TemporaryFolder run;
    for (int attempt = 0; attempt < 2; ++attempt) {
        test::CaptureFile file(run.path() / "capture" / ("a" + std::to_string(attempt) + ".cap"),
                               {0, 1, "node0", 50 + attempt, attempt});
        file.stream(0, 7, 0);
        file.kernel(attempt == 0 ? "old" : "new", 0, 100, 10);
        if (attempt == 0) file.kernel("old", 0, 200, 10);
        file.end(1'000);
    }
    TraceReader trace = collected(run.path());
    ASSERT_EQ(trace.extent<store::Kernel>(0).count(), 1);
    trace.forEach<store::Kernel>(0,
                                 [&](const store::Kernel& kernel) { EXPECT_EQ(trace.string(kernel.nameId), "new"); });
    EXPECT_TRUE(hasLoss(trace, "earlier_attempt"));
}

TEST(Collect, OfTwoFilesOfOneRankTheOneWithMoreDeviceWorkCounts) {
    const TemporaryFolder run;
    for (int pid = 1; pid <= 2; ++pid) {
        test::CaptureFile file(run.path() / "capture" / ("p" + std::to_string(pid) + ".cap"), {0, 1, "node0", pid, 0});
        file.stream(0, 7, 0);
        for (int i = 0; i < pid; ++i) file.kernel("k", 0, 100 + 50 * i, 10);
        file.end(1'000);
    }
    TraceReader trace = collected(run.path());
    EXPECT_EQ(trace.all<store::Process>().at(0).pid, 2);
    EXPECT_TRUE(hasLoss(trace, "duplicate_rank"));
}

TEST(Collect, MembersThatDisagreeAreALossAndIncomplete) {
    const TemporaryFolder run;
    for (int rank = 0; rank < 2; ++rank) {
        test::CaptureFile file(run.path() / "capture" / ("r" + std::to_string(rank) + ".cap"),
                               {rank, 2, "node0", 10 + rank, 0});
        file.stream(0, 7, 0);
        file.communicator(1, 77, rank, 2);
        file.ncclCall(capture::NcclOp::allReduce, 1, rank == 0 ? 100 : 200, 1'000, 1, 0);
        file.end(9'000);
    }
    TraceReader trace = collected(run.path());
    ASSERT_EQ(trace.all<store::Collective>().size(), 1u);
    EXPECT_FALSE(trace.all<store::Collective>()[0].complete);
    EXPECT_TRUE(hasLoss(trace, "unmatched_collective"));
}

TEST(Collect, AMembersMissingKernelLeavesItsPeersWaitsUnknownAndMarksIt) {
    const TemporaryFolder run;
    TrainingJob job;
    job.lostKernelOfRank = 3;
    job.write(run.path());
    TraceReader trace = collected(run.path());
    int unknown = 0;
    for (const store::CollectiveMember& member : trace.all<store::CollectiveMember>()) unknown += !member.waitNs;
    EXPECT_EQ(unknown, 3) << "the other members of one collective";
    int marked = 0;
    for (const store::Loss& loss : trace.all<store::Loss>()) {
        if (loss.kind != "kernel_missing") continue;
        ++marked;
        EXPECT_EQ(loss.rank, 3);
        EXPECT_EQ(loss.count, 1);
    }
    EXPECT_EQ(marked, 1);
}

TEST(Collect, CallsOfAGroupShareItsKernel) {
    const TemporaryFolder run;
    {
        test::CaptureFile file(run.path() / "capture" / "r.cap", {0, 1, "node0", 10, 0});
        file.stream(0, 7, 0xabc);
        file.communicator(1, 77, 0, 1);
        file.ncclCall(capture::NcclOp::allReduce, 1, 100, 1'000, 1, 0xabc, -1, 5);
        file.ncclCall(capture::NcclOp::allReduce, 1, 100, 2'000, 2, 0xabc, -1, 5);
        file.ncclGroup(5, 900, 9'000, 3, 2);
        file.kernel("ncclDevKernel_AllReduce", 0, 10'000, 500, 42, 8'000);
        file.external(42, 3);
        file.end(20'000);
    }
    TraceReader trace = collected(run.path());
    int linked = 0;
    trace.forEach<store::NcclCall>(0, [&](const store::NcclCall& call) { linked += call.kernelId.has_value(); });
    EXPECT_EQ(linked, 2);
}

TEST(Collect, SendsMeetTheirReceives) {
    const TemporaryFolder run;
    for (int rank = 0; rank < 2; ++rank) {
        test::CaptureFile file(run.path() / "capture" / ("r" + std::to_string(rank) + ".cap"),
                               {rank, 2, "node0", 10 + rank, 0});
        file.stream(0, 7, 0);
        file.communicator(1, 77, rank, 2);
        for (int k = 0; k < 2; ++k) {
            const int64_t at = 100'000 * (k + 1);
            file.ncclCall(rank == 0 ? capture::NcclOp::send : capture::NcclOp::recv, 1, 256, at - 5'000, 10 + k, 0,
                          1 - rank);
            // The receiver waits 7 us for the sender; both end together.
            const int64_t arrivalNs = rank == 0 ? at + 7'000 : at;
            file.kernel("ncclDevKernel_SendRecv", 0, arrivalNs, at + 10'000 - arrivalNs, 1 + k, at - 4'000);
            file.external(1 + k, 10 + k);
        }
        file.end(900'000);
    }
    TraceReader trace = collected(run.path());
    const auto messages = trace.all<store::P2p>();
    ASSERT_EQ(messages.size(), 2u);
    for (const store::P2p& message : messages) {
        EXPECT_TRUE(message.complete);
        EXPECT_EQ(message.srcRank, 0);
        EXPECT_EQ(message.bytes, 1024);
        EXPECT_EQ(message.recvWaitNs, 7'000);
        EXPECT_EQ(message.sendWaitNs, 0);
        EXPECT_EQ(message.transferNs, 3'000);
    }
}

TEST(Collect, AHookedCallThatCuptiSawToIsOneRowWithItsArgument) {
    const TemporaryFolder run;
    {
        test::CaptureFile file(run.path() / "capture" / "r.cap", {0, 1, "node0", 10, 0});
        file.stream(0, 7, 0);
        file.hookedApi(capture::CudaApi::malloc, 1'000, 2'000, 4096);
        file.api(20, 1'100, 800, 1);  // cudaMalloc
        file.hookedApi(capture::CudaApi::streamSynchronize, 3'000, 4'000, 7);
        file.kernel("k", 0, 5'000, 10);
        file.end(9'000);
    }
    TraceReader trace = collected(run.path());
    std::vector<store::ApiCall> calls;
    trace.forEach<store::ApiCall>(0, [&](const store::ApiCall& call) { calls.push_back(call); });
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0].source, store::ApiSource::cuptiRuntime);
    EXPECT_EQ(calls[0].argument, 4096);
    EXPECT_EQ(trace.string(calls[0].nameId), "cudaMalloc");
    EXPECT_EQ(calls[1].source, store::ApiSource::hook);
    EXPECT_EQ(calls[1].kind, store::ApiKind::synchronize);
    EXPECT_EQ(trace.extent<store::Allocation>(0).count(), 1);
}

TEST(Collect, AnEventWithoutADeviceTimeHasTheTimeOfItsCall) {
    const TemporaryFolder run;
    {
        test::CaptureFile file(run.path() / "capture" / "r.cap", {0, 1, "node0", 10, 0});
        file.stream(0, 7, 0);
        file.kernel("k", 0, 5'000, 10);
        file.api(135, 7'000, 100, 9);  // cudaEventRecord
        file.add(capture::CudaEventRecord{{capture::RecordType::cudaEvent, 1, 0}, 9, 0, 3, {}});
        file.add(capture::CudaEventRecord{{capture::RecordType::cudaEvent, 1, 0}, 10, 0, 4, {}});
        file.end(9'000);
    }
    TraceReader trace = collected(run.path());
    ASSERT_EQ(trace.extent<store::CudaEvent>(0).count(), 1);
    trace.forEach<store::CudaEvent>(0, [](const store::CudaEvent& event) { EXPECT_EQ(event.timeNs, 2'000); });
    EXPECT_TRUE(hasLoss(trace, "untimed_event"));
}

/// What the proxy did for a collective that the plugin told of, with its start as its thread's `seq` names it.
capture::PluginProxyOpRecord proxyOp(uint64_t commHash, int rank, int64_t parentStartNs, uint32_t parentSeq,
                                     int64_t startNs) {
    capture::PluginProxyOpRecord record{};
    record.head = {capture::RecordType::pluginProxyOp, 3, static_cast<uint16_t>(capture::NcclOp::allReduce)};
    record.parentSeq = parentSeq;
    record.startNs = startNs;
    record.endNs = startNs + 900;
    record.commHash = commHash;
    record.parentStartNs = parentStartNs;
    record.bytes = 4096;
    record.peer = 1;
    record.steps = 2;
    record.gpuWaitNs = 100;
    record.peerWaitNs = 20;
    record.networkWaitNs = 700;
    record.channel = 3;
    record.isSend = 1;
    record.pluginVersion = 5;
    record.rank = rank;
    return record;
}

capture::PluginCollRecord pluginCollective(uint64_t commHash, int64_t startNs, uint32_t seq) {
    capture::PluginCollRecord record{};
    record.head = {capture::RecordType::pluginColl, 2, static_cast<uint16_t>(capture::NcclOp::allReduce)};
    record.seq = seq;
    record.startNs = record.endNs = startNs;
    record.commHash = commHash;
    return record;
}

/// A light recording: two ranks, each with two collectives and a group of two messages, and the device's times of their
/// channels moved by `shiftNs`.
void writeLightRank(const std::filesystem::path& run, int rank, int64_t shiftNs) {
    test::CaptureFile file(run / "capture" / ("r" + std::to_string(rank) + ".cap"), {rank, 2, "node0", 10 + rank, 0});
    const auto channel = [&](uint32_t seq, uint16_t index, int64_t startNs, int64_t endNs) {
        file.add(capture::PluginChannelRecord{
            {capture::RecordType::pluginKernelChannel, 1, index}, seq, startNs + shiftNs, endNs + shiftNs, 77});
    };
    file.communicator(1, 77, rank, 2);
    for (uint32_t k = 0; k < 2; ++k) {
        const int64_t calledNs = 10'000 + k * 10'000;
        file.ncclCall(capture::NcclOp::allReduce, 1, 8, calledNs, 0, 0xabc);
        file.add(pluginCollective(77, calledNs + 10, 4 + k));
        channel(4 + k, 0, calledNs + 1'000 + 500 * rank, calledNs + 4'000);
        channel(4 + k, 1, calledNs + 900 + 500 * rank, calledNs + 3'900);
    }
    for (const capture::NcclOp op : {capture::NcclOp::send, capture::NcclOp::recv}) {
        const bool sends = op == capture::NcclOp::send;
        file.ncclCall(op, 1, 8, sends ? 40'000 : 40'100, 0, 0xdef, 1 - rank, 5);
        capture::PluginCollRecord message = pluginCollective(77, sends ? 40'010 : 40'110, sends ? 8 : 9);
        message.head.type = capture::RecordType::pluginP2p;
        message.head.aux = static_cast<uint16_t>(op);
        file.add(message);
        channel(sends ? 8 : 9, 0, sends ? 41'000 : 41'200, sends ? 43'000 : 43'500);
    }
    file.ncclCall(capture::NcclOp::allReduce, 1, 8, 60'000, 0, 0xabc);  // never seen on the device
}

TEST(Collect, OfALightRecordingKernelsAreThoseThatThePluginSaw) {
    for (const int64_t shiftNs : {int64_t{0}, int64_t{-5'000}, int64_t{7'200'000'000'000}}) {
        const TemporaryFolder run;
        for (int rank = 0; rank < 2; ++rank) writeLightRank(run.path(), rank, shiftNs);
        TraceReader trace = collected(run.path());
        EXPECT_EQ(trace.extent<store::Kernel>(0).last - trace.extent<store::Kernel>(0).first + 1, 3) << shiftNs;
        std::vector<int64_t> kernels;
        trace.forEach<store::NcclCall>(
            0, [&](const store::NcclCall& call) { kernels.push_back(call.kernelId.value_or(-1)); });
        ASSERT_EQ(kernels.size(), 5u);
        EXPECT_EQ(kernels[2], kernels[3]) << "one kernel for the group";
        EXPECT_EQ(kernels[4], -1);
        store::Kernel group;
        ASSERT_TRUE(trace.find(kernels[2], group));
        EXPECT_EQ(group.durNs, 2'500);
        EXPECT_EQ(group.nccl, store::NcclKernel::byCall);
        const auto collectives = trace.all<store::Collective>();
        ASSERT_EQ(collectives.size(), 3u);
        // Clocks that count from another moment are held against the earliest call, which on rank 1 is a message.
        const int64_t lateNs = shiftNs == 0 ? 500 : 400;
        EXPECT_EQ(*collectives[0].lastArrivalNs - *collectives[0].firstArrivalNs, lateNs) << shiftNs;
        EXPECT_FALSE(collectives[2].endNs);
    }
}

TEST(Collect, CallsBehindThoseThatWereLeftOutCountOn) {
    const TemporaryFolder run;
    {
        test::CaptureFile file(run.path() / "capture" / "r.cap", {0, 1, "node0", 10, 0});
        file.communicator(1, 77, 0, 2);
        file.ncclCall(capture::NcclOp::allReduce, 1, 8, 100, 0, 0);
        file.ncclCall(capture::NcclOp::allReduce, 1, 8, 500, 0, 0);
        file.ncclCall(capture::NcclOp::allReduce, 1, 8, 600, 0, 0);
        capture::CallGapRecord gap{};
        gap.head = {capture::RecordType::callGap, 1, 0};
        gap.communicator = 1;
        gap.fromNs = 150;
        gap.untilNs = 390;
        gap.calls = 3;
        gap.peer = -1;
        file.add(gap);
        gap.head.aux = static_cast<uint16_t>(capture::NcclOp::send);  // messages count by themselves
        gap.peer = 1;
        gap.calls = 7;
        file.add(gap);
        gap.communicator = 9;  // of none that the file tells
        file.add(gap);
        gap.communicator = 1;
        gap.fromNs = 400;  // behind its end: no times
        file.add(gap);
        file.end(9'000);
    }
    TraceReader trace = collected(run.path());
    const auto calls = trace.all<store::NcclCall>();
    ASSERT_EQ(calls.size(), 3u);
    EXPECT_EQ((std::vector{*calls[0].seq, *calls[1].seq, *calls[2].seq}), (std::vector<int64_t>{0, 4, 5}));
    EXPECT_TRUE(hasLoss(trace, "bad_record"));
}

TEST(Collect, WhatTheProxySentIsTiedToItsCall) {
    const TemporaryFolder run;
    {
        test::CaptureFile file(run.path() / "capture" / "r.cap", {0, 1, "node0", 10, 0});
        file.communicator(1, 77, 0, 2);
        file.ncclCall(capture::NcclOp::allReduce, 1, 8, 100, 0, 0);
        file.ncclCall(capture::NcclOp::allReduce, 1, 8, 200, 0, 0);
        file.add(pluginCollective(77, 210, 9));
        file.add(pluginCollective(77, 110, 4));
        file.add(proxyOp(77, 0, 210, 9, 5'000));
        file.add(proxyOp(77, 0, 110, 4, 4'000));
        file.add(proxyOp(77, 0, 999, 4, 4'500));  // its collective is not in the file
        capture::PluginProxyOpRecord foreign = proxyOp(0, 5, 0, 0, 6'000);
        foreign.flags = 1;
        file.add(foreign);
        capture::PluginProxyOpRecord impossible = proxyOp(77, 0, 110, 4, 4'000);
        impossible.networkWaitNs = -1;
        file.add(impossible);
        file.end(9'000);
    }
    TraceReader trace = collected(run.path());
    const auto calls = trace.all<store::NcclCall>();
    const auto ops = trace.all<store::ProxyOp>();
    ASSERT_EQ(calls.size(), 2u);
    ASSERT_EQ(ops.size(), 4u);
    EXPECT_EQ(ops[0].callId, calls[0].id);
    EXPECT_EQ(ops[1].callId, std::nullopt);
    EXPECT_EQ(ops[2].callId, calls[1].id);
    EXPECT_EQ(ops[0].communicatorId, calls[0].communicatorId);
    EXPECT_EQ(ops[3].communicatorId, std::nullopt);
    EXPECT_EQ(ops[3].onBehalfOf, 5);
    EXPECT_EQ(ops[0].durNs, 900);
    EXPECT_EQ(ops[0].peer, 1);
    EXPECT_EQ(ops[0].channel, 3);
    EXPECT_TRUE(ops[0].isSend);
    EXPECT_EQ(ops[0].bytes, 4096);
    EXPECT_EQ(ops[0].gpuWaitNs, 100);
    EXPECT_EQ(ops[0].peerWaitNs, 20);
    EXPECT_EQ(ops[0].networkWaitNs, 700);
    EXPECT_TRUE(hasLoss(trace, "bad_record"));
}

capture::MachineLinkRecord machineLink(test::CaptureFile& file, capture::LinkKind kind, const char* name,
                                       int32_t device, int64_t bytesPerS) {
    capture::MachineLinkRecord record{};
    record.head = {capture::RecordType::machineLink, 1, 0};
    record.device = device;
    record.name = file.text(name);
    record.bytesPerS = bytesPerS;
    record.count = 1;
    record.kind = kind;
    record.source = kind == capture::LinkKind::nvlink || kind == capture::LinkKind::pcie ? capture::LinkSource::nvml
                                                                                         : capture::LinkSource::sysfs;
    return record;
}

TEST(Collect, APortOfAHostIsOneRowAndADevicesLinkBelongsToTheRankThatUsesIt) {
    const TemporaryFolder run;
    for (int rank = 0; rank < 4; ++rank) {
        const std::string host = rank < 2 ? "node0" : "node1";
        test::CaptureFile file(run.path() / "capture" / (std::to_string(rank) + ".cap"),
                               {rank, 4, host, 10 + rank, 0, "boot" + host});
        file.stream(0, 7, 0, rank % 2);
        file.kernel("k", 0, 5'000 + rank, 10);
        // Each process sees both devices of its node, and the port; one told its rate only later.
        for (int device = 0; device < 2; ++device) {
            file.add(machineLink(file, capture::LinkKind::nvlink, "NVLink", device, 450'000'000'000 + device));
            file.add(machineLink(file, capture::LinkKind::pcie, "PCIe", device, 0));
        }
        file.add(machineLink(file, capture::LinkKind::infiniband, "mlx5_0/1", -1, rank == 0 ? 0 : 50'000'000'000));
        file.end(9'000);
    }
    TraceReader trace = collected(run.path());
    std::vector<std::string> rows;
    for (const auto& link : trace.all<store::MachineLink>()) {
        EXPECT_EQ(link.id, static_cast<int64_t>(rows.size()) + 1);
        EXPECT_EQ(link.count, 1);
        EXPECT_EQ(link.generation, std::nullopt);
        rows.push_back(std::to_string(link.hostId) + " " + std::to_string(link.rank.value_or(-1)) + " " + link.kind +
                       " " + link.name + " " + std::to_string(link.bytesPerS.value_or(-1)) + " " + link.source);
    }
    EXPECT_EQ(rows, (std::vector<std::string>{
                        "0 -1 infiniband mlx5_0/1 50000000000 sysfs", "0 0 nvlink NVLink 450000000000 nvml",
                        "0 0 pcie PCIe -1 nvml", "0 1 nvlink NVLink 450000000001 nvml", "0 1 pcie PCIe -1 nvml",
                        "1 -1 infiniband mlx5_0/1 50000000000 sysfs", "1 2 nvlink NVLink 450000000000 nvml",
                        "1 2 pcie PCIe -1 nvml", "1 3 nvlink NVLink 450000000001 nvml", "1 3 pcie PCIe -1 nvml"}));
}

TEST(Collect, ALinkThatMakesNoSenseIsLeftOut) {
    const TemporaryFolder run;
    {
        test::CaptureFile file(run.path() / "capture" / "r.cap", {0, 1, "node0", 10, 0});
        file.kernel("k", 0, 5'000, 10);
        file.add(machineLink(file, capture::LinkKind::unknown, "odd", -1, 1));
        file.add(machineLink(file, static_cast<capture::LinkKind>(200), "odd", -1, 1));
        file.add(machineLink(file, capture::LinkKind::ethernet, "", -1, 1));
        auto none = machineLink(file, capture::LinkKind::ethernet, "none", -1, 1);
        none.count = 0;
        file.add(none);
        auto nobody = machineLink(file, capture::LinkKind::ethernet, "nobody", -1, 1);
        nobody.source = static_cast<capture::LinkSource>(9);
        file.add(nobody);
        file.add(machineLink(file, capture::LinkKind::ethernet, "absurd", -1, INT64_MAX));
        file.add(machineLink(file, capture::LinkKind::ethernet, "negative", -1, INT64_MIN));
        file.end(9'000);
    }
    TraceReader trace = collected(run.path());
    const auto links = trace.all<store::MachineLink>();
    ASSERT_EQ(links.size(), 2u);
    EXPECT_EQ(links[0].name, "absurd");
    EXPECT_EQ(links[0].bytesPerS, std::nullopt);
    EXPECT_EQ(links[1].bytesPerS, std::nullopt);
}

TEST(Collect, OneProcessThatDrivesTwoDevicesIsTwoRanks) {
    const TemporaryFolder run;
    {
        test::CaptureFile file(run.path() / "capture" / "r.cap", {-1, -1, "node0", 10, 0});
        for (int device = 0; device < 2; ++device) {
            file.add(capture::RankIdentityRecord{
                {capture::RecordType::rankIdentity, 1, 0}, device, 2, device, 1, device, 0});
            file.stream(static_cast<uint16_t>(device), 7, 0, device);
            file.communicator(static_cast<uint32_t>(device) + 1, 77, device, 2, 1, device);
            file.kernel("k", static_cast<uint16_t>(device), 5'000 + device, 10);
            file.ncclCall(capture::NcclOp::allReduce, static_cast<uint32_t>(device) + 1, 8, 100 + device, 0, 0);
            file.add(proxyOp(77, device, 0, 0, 6'000 + device));
        }
        file.end(9'000);
    }
    TraceReader trace = collected(run.path());
    ASSERT_EQ(trace.all<store::Rank>().size(), 2u);
    EXPECT_EQ(trace.all<store::Process>().size(), 1u);
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(trace.extent<store::Kernel>(rank).count(), 1);
        EXPECT_EQ(trace.extent<store::NcclCall>(rank).count(), 1);
        EXPECT_EQ(trace.extent<store::ProxyOp>(rank).count(), 1);
    }
    EXPECT_TRUE(trace.all<store::Collective>().at(0).complete);
}

}  // namespace
}  // namespace rankscope
