// SPDX-License-Identifier: Apache-2.0
// A data-parallel job as capture files: every step computes, then reduces gradients; the slow rank arrives last.
#pragma once

#include <algorithm>
#include <string>

#include "tests/unit/collector/capture_file.h"

namespace rankscope::test {

struct TrainingJob {
    int ranks = 4;
    int steps = 5;
    int slowRank = 2;
    int64_t computeNs = 1'000'000;
    int64_t slowComputeNs = 1'500'000;
    int64_t transferNs = 200'000;
    int64_t originNs = 1'000'000'000;
    int ranksPerHost = 64;
    int64_t hostOffsetNs = 0;   ///< what the clock of each further host is ahead of the one before
    int64_t hostDriftPpb = 0;   ///< and how much faster it runs
    int lostKernelOfRank = -1;  ///< this rank's NCCL kernel of the second step is not recorded
    bool stepRanges = true;
    std::string stepName = "train_step";
    int64_t gapNs = 100'000;  ///< host work between steps
    int exitStatus = 0;       ///< of the ranks that are written with a farewell
    int64_t reducedElements = 1 << 20;

    int64_t stepNs() const { return gapNs + std::max(computeNs, slowComputeNs) + transferNs; }
    int64_t computeOf(int rank) const { return rank == slowRank ? slowComputeNs : computeNs; }
    std::string hostOf(int rank) const { return "node" + std::to_string(rank / ranksPerHost); }
    /// A true time as the clock of the rank's host shows it.
    int64_t shown(int rank, int64_t trueNs) const {
        const int64_t host = rank / ranksPerHost;
        return trueNs + host * hostOffsetNs + (trueNs - originNs) / 1000 * (host * hostDriftPpb) / 1'000'000;
    }
    std::filesystem::path fileOf(const std::filesystem::path& run, int rank) const {
        return run / "capture" / (hostOf(rank) + "." + std::to_string(1000 + rank) + ".1.cap");
    }

    /// Writes one rank's file; `died` leaves out the farewell and leaves the rings.
    void writeRank(const std::filesystem::path& run, int rank, bool died = false) const {
        CaptureFile file(fileOf(run, rank), {rank, ranks, hostOf(rank), 1000 + rank, 0});
        file.stream(0, 7, 0);
        file.stream(1, 20, 0xabc);
        file.communicator(1, 0x1234'5678'9abc'def0, rank, ranks, shown(rank, originNs - 1'000));
        uint32_t correlation = 1;
        for (int step = 0; step < steps; ++step) {
            const int64_t startNs = originNs + step * stepNs();
            const int64_t computeStartNs = startNs + gapNs;
            const int64_t arrivalNs = computeStartNs + computeOf(rank);
            const int64_t endNs = computeStartNs + std::max(computeNs, slowComputeNs) + transferNs;
            const auto at = [&](int64_t trueNs) { return shown(rank, trueNs); };
            if (stepRanges) file.push(stepName, at(startNs));
            file.kernel("gemm", 0, at(computeStartNs), at(arrivalNs) - at(computeStartNs), correlation,
                        at(computeStartNs - 10'000));
            ++correlation;
            const uint64_t callId = 100 + static_cast<uint64_t>(step);
            file.ncclCall(capture::NcclOp::allReduce, 1, static_cast<uint64_t>(reducedElements),
                          at(computeStartNs - 5'000), callId, 0xabc);
            const bool lost = rank == lostKernelOfRank && step == 1;
            if (!lost)
                file.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 1,
                            at(arrivalNs), at(endNs) - at(arrivalNs), correlation, at(computeStartNs - 4'000));
            if (!lost) file.external(correlation, callId);
            ++correlation;
            file.api(165, at(computeStartNs + 1'000), at(endNs) - at(computeStartNs + 1'000),
                     correlation++);  // cudaDeviceSynchronize
            if (stepRanges) file.pop(at(endNs));
        }
        if (died)
            leaveRings(fileOf(run, rank));
        else
            file.end(shown(rank, originNs + steps * stepNs() + 1'000), 1, exitStatus);
    }

    void write(const std::filesystem::path& run) const {
        for (int rank = 0; rank < ranks; ++rank) writeRank(run, rank);
    }
};

}  // namespace rankscope::test
