// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/kernel_sequence.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "collector/ingest/launch_order.h"

namespace rankscope::collector {
namespace {

/// Counts that differ by no more than this share are the same: data decides over a kernel now and then.
constexpr double kSameCount = 0.1;
/// Fewer pieces than this share may hold more of the same kernels: a validation pass behind each third step or less
/// often. More of them are a program whose pieces differ.
constexpr double kOtherPasses = 0.4;
/// With so many pieces the first is left out.
constexpr size_t kEnoughPieces = 4;

struct NameCounts {
    std::vector<int64_t> launches;  ///< by piece
    std::vector<double> timesNs;
};

}  // namespace

KernelSequence kernelsInLaunchOrder(const RankRecording& recording) {
    const LaunchTimes launches(recording.apiCalls);
    KernelSequence kernels;
    kernels.reserve(recording.kernels.size());
    for (const store::Kernel& kernel : recording.kernels)
        kernels.push_back({kernel.nameId, kernel.nccl != store::NcclKernel::no,
                           launches.of(kernel.correlationId, kernel.startNs), kernel.durNs});
    // Kernels of one launch, a graph's, keep the order in which they started.
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const KernelLaunch& a, const KernelLaunch& b) { return a.launchNs < b.launchNs; });
    return kernels;
}

double alikeShare(const KernelSequence& kernels, const Cuts& cuts) {
    if (cuts.size() < 3) return 0;  // one piece is like itself, which tells nothing
    const size_t first = cuts.size() - 1 >= kEnoughPieces ? 1 : 0;
    const size_t pieces = cuts.size() - 1 - first;
    std::unordered_map<int32_t, NameCounts> names;
    for (size_t piece = 0; piece < pieces; ++piece) {
        for (size_t i = cuts[first + piece]; i < cuts[first + piece + 1]; ++i) {
            if (kernels[i].communicates) continue;
            NameCounts& counts = names[kernels[i].nameId];
            counts.launches.resize(pieces);
            counts.timesNs.resize(pieces);
            ++counts.launches[piece];
            counts.timesNs[piece] += static_cast<double>(kernels[i].durNs);
        }
    }
    double allNs = 0, alikeNs = 0;
    for (const auto& [name, counts] : names) {
        std::vector<int64_t> sorted = counts.launches;
        std::sort(sorted.begin(), sorted.end());
        const auto usual = static_cast<double>(sorted[pieces / 2]);
        const auto unlike = [usual](int64_t launches) {
            return std::abs(static_cast<double>(launches) - usual) > kSameCount * usual;
        };
        const auto more = static_cast<double>(std::count_if(sorted.begin(), sorted.end(), [&](int64_t launches) {
            return unlike(launches) && static_cast<double>(launches) > usual;
        }));
        const bool otherPass = usual > 0 && more < kOtherPasses * static_cast<double>(pieces);
        const double meanNs = std::accumulate(counts.timesNs.begin(), counts.timesNs.end(), 0.0) /
                              static_cast<double>(std::accumulate(sorted.begin(), sorted.end(), int64_t{0}));
        for (size_t piece = 0; piece < pieces; ++piece) {
            const int64_t launches = counts.launches[piece];
            const bool alike = !unlike(launches);
            const double timesNs = counts.timesNs[piece];
            if (!alike && otherPass && static_cast<double>(launches) > usual) {
                // Its part in the step itself is alike, and the rest is another pass's.
                allNs += timesNs * usual / static_cast<double>(launches);
                alikeNs += timesNs * usual / static_cast<double>(launches);
                continue;
            }
            allNs += timesNs;
            if (alike) alikeNs += timesNs;
            // What a piece lacks is unlike, too.
            if (!alike && static_cast<double>(launches) < usual)
                allNs += (usual - static_cast<double>(launches)) * meanNs;
        }
    }
    return allNs > 0 ? alikeNs / allNs : 0;
}

}  // namespace rankscope::collector
