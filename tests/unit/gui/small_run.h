// SPDX-License-Identifier: Apache-2.0
// A trace.db of two ranks, made by the store's own writer: a step with a GEMM, a copy, a GEMM and an all-reduce, for
// which rank 1 is late.
#pragma once

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <vector>

#include "collector/store/reader.h"
#include "collector/store/writer.h"
#include "gui/session/run_info.h"
#include "gui/session/track_loader.h"

namespace rankscope::gui::test {

constexpr int64_t kUs = 1000;
/// What a task looks at to see whether it shall stop.
inline const std::atomic<bool> kGoOn{false};

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "rankscope-gui-XXXXXX").string();
        if (!mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp failed");
        m_path = pattern;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(m_path, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::filesystem::path file() const { return m_path / "trace.db"; }

  private:
    std::filesystem::path m_path;
};

/// Names of the strings of SmallRun, in order of their ids from 1.
enum SmallName : int32_t { gemm = 1, reduceKernel, launch, memcpyCall, forward, lastName };

struct SmallRun {
    TemporaryFolder folder;

    /// Times of rank 1 are 50 us later from the second GEMM on: it arrives last. `damage` runs SQL on the finished
    /// file.
    explicit SmallRun(const std::string& damage = {}, const std::string& gemmName = "ampere_sgemm_128x64_tn") {
        store::TraceWriter writer(folder.file());
        for (const std::string& name :
             {gemmName, std::string("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"), std::string("cudaLaunchKernel"),
              std::string("cudaMemcpyAsync"), std::string("forward")})
            writer.intern(name);
        writer.write(store::Host{0, "alpha", {}});
        for (int32_t rank : {0, 1}) {
            store::Rank row;
            row.rank = rank;
            row.hostId = 0;
            writer.write(row);
            writer.write(store::Stream{1 + 2 * rank, rank, {}, 0, 7, {}, {}});
            writer.write(store::Stream{2 + 2 * rank, rank, {}, 0, 20, {}, {}});
            writer.write(store::Thread{rank, rank, rank, 100 + rank, "main"});
            writer.write(store::Step{rank, 0, 0, 1000 * kUs, false});
        }
        writer.write(store::Communicator{1, 42, "comm_hash", 2, {}, "data parallel", 1});
        for (int32_t rank : {0, 1}) writer.write(store::CommunicatorMember{1, rank, rank, {}, {}, {}});
        for (int32_t rank : {0, 1}) writeRank(writer, rank);
        store::Collective collective{1,
                                     1,
                                     0,
                                     store::Op::allReduce,
                                     1 << 20,
                                     store::DataType::bf16,
                                     store::Algorithm::ring,
                                     store::Protocol::ll,
                                     2,
                                     400 * kUs,
                                     450 * kUs,
                                     1,
                                     600 * kUs,
                                     150 * kUs,
                                     true,
                                     0};
        writer.write(collective);
        for (int32_t rank : {0, 1})
            writer.write(store::CollectiveMember{1, rank, 1 + rank, 3 * rank + 3, (400 + 50 * rank) * kUs, 600 * kUs,
                                                 (50 - 50 * rank) * kUs, 150 * kUs});
        writer.setMeta("run_name", "small");
        writer.setMeta("duration_ns", std::to_string(1000 * kUs));
        writer.finish();
        if (!damage.empty()) store::Database(folder.file().string(), store::OpenMode::readWrite).execute(damage);
    }

    store::TraceReader reader() const { return store::TraceReader(folder.file(), {}, store::MisplacedRows::kept); }
    std::shared_ptr<const RunInfo> info() const {
        auto trace = reader();
        return std::make_shared<const RunInfo>(readRunInfo(trace));
    }
    std::vector<RankTracksPtr> tracks(const RunInfo& run) const {
        auto trace = reader();
        std::vector<RankTracksPtr> tracks;
        LoadControl control;
        for (const OutlineRank& rank : run.outline.ranks)
            tracks.push_back(loadRankTracks(trace, run, rank.rank, control));
        return tracks;
    }

  private:
    // Kernels 3 * rank + 1.. : GEMM [100, 200), GEMM [250, 350 or 400), all-reduce to 600. Copy [210, 240).
    static void writeRank(store::TraceWriter& writer, int32_t rank) {
        const int64_t late = 50 * kUs * rank;
        const auto correlation = [rank](uint32_t k) { return 100 * static_cast<uint32_t>(rank) + k; };
        const auto kernel = [&](int64_t k, int32_t stream, int64_t startNs, int64_t durNs, int32_t name,
                                store::NcclKernel nccl) {
            store::Kernel row{3 * rank + k,
                              rank,
                              stream + 2 * rank,
                              startNs,
                              durNs,
                              name,
                              correlation(static_cast<uint32_t>(k)),
                              nccl,
                              108,
                              256,
                              {}};
            writer.write(row);
        };
        kernel(1, 1, 100 * kUs, 100 * kUs, gemm, store::NcclKernel::no);
        kernel(2, 1, 250 * kUs, 100 * kUs + late, gemm, store::NcclKernel::no);
        kernel(3, 2, 400 * kUs + late, 200 * kUs - late, reduceKernel, store::NcclKernel::byCall);
        writer.write(
            store::Memcpy{1 + rank, rank, 1 + 2 * rank, 210 * kUs, 30 * kUs, 3'000'000, 1, 2, 3, correlation(4)});
        for (uint32_t k : {1u, 2u, 3u})
            writer.write(store::ApiCall{4 * rank + k,
                                        rank,
                                        rank,
                                        10 * kUs * k,
                                        5 * kUs,
                                        launch,
                                        store::ApiKind::launch,
                                        store::ApiSource::cuptiRuntime,
                                        correlation(k),
                                        {}});
        writer.write(store::ApiCall{4 * rank + 4,
                                    rank,
                                    rank,
                                    40 * kUs,
                                    5 * kUs,
                                    memcpyCall,
                                    store::ApiKind::copy,
                                    store::ApiSource::cuptiRuntime,
                                    correlation(4),
                                    {}});
        writer.write(store::NvtxRange{
            1 + rank, rank, rank, 5 * kUs, 500 * kUs, store::NvtxKind::pushPop, {}, forward, 0, {}, {}, {}});
        store::NcclCall call{1 + rank,
                             rank,
                             rank,
                             1,
                             28 * kUs,
                             12 * kUs,
                             store::Op::allReduce,
                             0,
                             1 << 19,
                             store::DataType::bf16,
                             1 << 20,
                             0,
                             {},
                             2 + 2 * rank,
                             {},
                             3 * rank + 3,
                             store::Algorithm::ring,
                             store::Protocol::ll,
                             8,
                             store::evidence::kHook | store::evidence::kPlugin};
        writer.write(call);
    }
};

}  // namespace rankscope::gui::test
