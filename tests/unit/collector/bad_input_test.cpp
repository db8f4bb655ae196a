// SPDX-License-Identifier: Apache-2.0
// What a capture directory may hold that no injector left there.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <random>

#include "collector/collect.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"
#include "injector/capture_format/crc32c.h"
#include "tests/unit/collector/training_job.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;
using store::TraceReader;
using test::TemporaryFolder;
using test::TrainingJob;

std::string bytesOf(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
}

std::vector<store::Loss> lossesOf(const fs::path& run) {
    return TraceReader(run).all<store::Loss>();
}

bool names(const std::vector<store::Loss>& losses, const std::string& kind, const std::string& text) {
    for (const store::Loss& loss : losses) {
        if (loss.kind == kind && loss.message.find(text) != std::string::npos) return true;
    }
    return false;
}

TrainingJob twoRanks() {
    TrainingJob job;
    job.ranks = 2;
    job.slowRank = 1;
    return job;
}

TEST(CollectBadInput, ZeroLengthAndForeignFilesAreLossesAndTheRestIsUsed) {
    const TemporaryFolder run;
    const TrainingJob job = twoRanks();
    job.write(run.path());
    write(run.path() / "capture" / "empty.cap", "");
    write(run.path() / "capture" / "foreign.cap", "#!/bin/sh\necho no capture at all\n");
    fs::create_directory(run.path() / "capture" / "folder.cap");
    collector::collect(run.path());
    const auto losses = lossesOf(run.path());
    EXPECT_TRUE(names(losses, "unreadable_file", "empty.cap"));
    EXPECT_TRUE(names(losses, "unreadable_file", "foreign.cap"));
    EXPECT_EQ(TraceReader(run.path()).all<store::Collective>().size(), static_cast<size_t>(job.steps));
}

TEST(CollectBadInput, AFifoNamedLikeACaptureDoesNotHang) {
    const TemporaryFolder run;
    twoRanks().write(run.path());
    ASSERT_EQ(mkfifo((run.path() / "capture" / "pipe.cap").c_str(), 0600), 0);
    collector::collect(run.path());
    EXPECT_TRUE(names(lossesOf(run.path()), "unreadable_file", "pipe.cap"));
}

TEST(CollectBadInput, AFutureVersionIsALossThatSaysSo) {
    const TemporaryFolder run;
    const TrainingJob job = twoRanks();
    job.write(run.path());
    std::string bytes = bytesOf(job.fileOf(run.path(), 1));
    capture::FileHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.formatVersion = 99;
    header.headerChecksum = capture::crc32c(&header, offsetof(capture::FileHeader, headerChecksum));
    std::memcpy(bytes.data(), &header, sizeof header);
    write(job.fileOf(run.path(), 1), bytes);
    collector::collect(run.path());
    const auto losses = lossesOf(run.path());
    EXPECT_TRUE(names(losses, "unreadable_file", "version 99"));
    EXPECT_TRUE(names(losses, "missing_rank", "rank 1"));
}

TEST(CollectBadInput, AFileCutAnywhereGivesItsFrontAndALoss) {
    const TemporaryFolder run;
    const TrainingJob job = twoRanks();
    job.write(run.path());
    const fs::path victim = job.fileOf(run.path(), 1);
    const std::string whole = bytesOf(victim);
    int64_t fewest = INT64_MAX;
    for (size_t length = whole.size() - 1; length > 0; length = length * 9 / 10) {
        write(victim, whole.substr(0, length));
        collector::collect(run.path());
        TraceReader trace(run.path());
        const int64_t kernels = trace.extent<store::Kernel>(1).count();
        EXPECT_LE(kernels, fewest);
        fewest = std::min(fewest, kernels);
        EXPECT_EQ(trace.extent<store::Kernel>(0).count(), 2 * job.steps);
        EXPECT_FALSE(trace.all<store::Loss>().empty());
        EXPECT_NE(trace.all<store::Rank>().at(1).state, store::RankState::complete);
    }
    EXPECT_EQ(fewest, 0);
}

TEST(CollectBadInput, FlippedBytesNeverHarmTheOtherRank) {
    const TemporaryFolder run;
    const TrainingJob job = twoRanks();
    job.write(run.path());
    const fs::path victim = job.fileOf(run.path(), 1);
    const std::string whole = bytesOf(victim);
    std::mt19937 random(7);
    for (int round = 0; round < 40; ++round) {
        std::string damaged = whole;
        for (int i = 0; i < 1 + round % 5; ++i)
            damaged[random() % damaged.size()] ^= static_cast<char>(1 << (random() % 8));
        write(victim, damaged);
        collector::collect(run.path());
        TraceReader trace(run.path());
        EXPECT_EQ(trace.extent<store::Kernel>(0).count(), 2 * job.steps);
        EXPECT_LE(trace.extent<store::Kernel>(1).count(), 2 * job.steps);
    }
}

TEST(CollectBadInput, RecordsWithImpossibleValuesInsideIntactBlocksAreLeftOut) {
    const TemporaryFolder run;
    {
        test::CaptureFile file(run.path() / "capture" / "r.cap", {0, INT32_MAX, "node0", 10, 0});
        file.kernel("before the stream is defined", 9, 100, 10, 5);
        file.kernel("k", 0, INT64_MAX - 1, 50);
        file.kernel("k", 0, -5, 50);
        file.add(capture::KernelRecord{
            {capture::RecordType::kernel, 1, 0}, 1, 500, UINT32_MAX, 12345, UINT32_MAX, UINT16_MAX, 2});
        file.add(capture::KernelGraphRecord{{capture::RecordType::kernelGraph, 1, 0}, UINT32_MAX, UINT64_MAX, 0, 0});
        file.communicator(1, 77, -7, INT32_MAX);
        file.communicator(1, 77, 3, -1);
        file.ncclCall(capture::NcclOp::allGather, 1, UINT64_MAX, 1'000, UINT64_MAX, 0);
        file.ncclCall(static_cast<capture::NcclOp>(200), 99, 5, 2'000, 0, 0, INT32_MAX, 3);
        file.ncclCall(capture::NcclOp::send, 1, 5, 2'500, 0, 0, INT32_MAX);
        file.ncclGroup(3, 1'000, 500, 1, 1);
        file.api(60'000, 3'000, 5, 1);
        file.pop(1);
        file.push("open", 2);
        file.end(INT64_MIN);
    }
    collector::collect(run.path());
    TraceReader trace(run.path());
    EXPECT_EQ(trace.extent<store::Kernel>(0).count(), 2);
    EXPECT_TRUE(names(trace.all<store::Loss>(), "bad_record", "impossible times"));
}

TEST(CollectBadInput, NothingReadableIsAnErrorThatNamesFileAndCause) {
    const TemporaryFolder run;
    fs::create_directories(run.path() / "capture");
    EXPECT_THROW(collector::collect(run.path()), store::Error);
    write(run.path() / "capture" / "a.cap", "nonsense");
    try {
        collector::collect(run.path());
        FAIL() << "collected nonsense";
    } catch (const store::Error& error) {
        EXPECT_NE(std::string(error.what()).find("a.cap"), std::string::npos);
        EXPECT_FALSE(error.hint().empty());
    }
    EXPECT_FALSE(fs::exists(run.path() / "trace.db"));
    EXPECT_THROW(collector::collect(run.path() / "absent"), store::Error);
}

TEST(CollectBadInput, HelpersThatUsedNoGpuAreNamedAsSuch) {
    const TemporaryFolder run;
    for (int pid = 1; pid <= 2; ++pid)
        test::CaptureFile(run.path() / "capture" / (std::to_string(pid) + ".cap"), {-1, -1, "node0", pid, 0});
    try {
        collector::collect(run.path());
        FAIL() << "there is nothing to collect";
    } catch (const store::Error& error) {
        EXPECT_NE(error.cause().find("neither a GPU nor NCCL"), std::string::npos);
    }
}

TEST(CollectBadInput, AFullDiskEndsInAnErrorAndLeavesTheOldTrace) {
    const TemporaryFolder run;
    TrainingJob job = twoRanks();
    job.write(run.path());
    collector::collect(run.path());
    const std::string before = bytesOf(run.path() / "trace.db");
    job.steps = 2'000;
    fs::remove_all(run.path() / "capture");
    job.write(run.path());

    // A limit on file size meets the writer as a full disk would: EFBIG instead of ENOSPC.
    rlimit old{};
    getrlimit(RLIMIT_FSIZE, &old);
    const rlimit small{300'000, old.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    EXPECT_THROW(collector::collect(run.path()), store::Error);
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, handler);

    EXPECT_EQ(bytesOf(run.path() / "trace.db"), before);
    for (const auto& entry : fs::directory_iterator(run.path())) EXPECT_NE(entry.path().extension(), ".part");
}

TEST(CollectBadInput, AFolderThatCannotBeWrittenIsAnError) {
    const TemporaryFolder run;
    twoRanks().write(run.path());
    collector::CollectOptions options;
    options.output = run.path() / "no such folder" / "trace.db";
    EXPECT_THROW(collector::collect(run.path(), options), store::Error);
}

}  // namespace
}  // namespace rankscope
