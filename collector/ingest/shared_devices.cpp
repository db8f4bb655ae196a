// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/shared_devices.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

namespace rankscope::collector {
namespace {

/// Parts of a device (MIG) are at one place on the bus, and each computes for itself.
bool isPartOfDevice(const RankSummary& summary) {
    for (const LocalDevice& device : summary.devices)
        if (device.ordinal == summary.device && device.name.find("MIG") != std::string::npos) return true;
    return false;
}

}  // namespace

std::vector<store::Loss> sharedDevices(const std::vector<RankSummary>& summaries,
                                       const std::function<int64_t(size_t)>& hostOf) {
    std::map<std::pair<int64_t, std::string>, std::vector<int32_t>> ranksOf;
    for (size_t s = 0; s < summaries.size(); ++s)
        if (!summaries[s].busId.empty() && !isPartOfDevice(summaries[s]))
            ranksOf[{hostOf(s), summaries[s].busId}].push_back(summaries[s].rank);
    std::vector<store::Loss> rows;
    for (const auto& [place, ranks] : ranksOf) {
        if (ranks.size() < 2) continue;
        for (const int32_t rank : ranks) {
            store::Loss row;
            row.kind = "shared_device";
            row.rank = rank;
            row.source = "injector";  // which asked the driver; an import has it from the export alone
            row.message = fmt::format(
                "{} ranks compute on one device ({}): their kernels take turns, so that how long these take says "
                "nothing of a rank's own pace, and NCCL has no path of its own between them, whose peak is unknown",
                ranks.size(), place.second);
            rows.push_back(std::move(row));
        }
    }
    return rows;
}

}  // namespace rankscope::collector
