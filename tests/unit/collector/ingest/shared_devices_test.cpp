// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/shared_devices.h"

#include <gtest/gtest.h>

namespace rankscope::collector {
namespace {

RankSummary rankOn(int32_t rank, const std::string& busId) {
    RankSummary summary;
    summary.rank = rank;
    summary.device = 0;  // each process sees its own as the first
    summary.busId = busId;
    return summary;
}

/// Ranks of the rows, two ranks on each host.
std::vector<int32_t> told(const std::vector<RankSummary>& summaries) {
    std::vector<int32_t> ranks;
    for (const store::Loss& row : sharedDevices(summaries, [](size_t summary) { return int64_t(summary / 2); })) {
        EXPECT_EQ(row.kind, "shared_device");
        ranks.push_back(*row.rank);
    }
    return ranks;
}

TEST(SharedDevices, AreThoseOfOnePlaceOnTheBusOfOneHost) {
    EXPECT_EQ(told({rankOn(0, "0000:3b:00.0"), rankOn(1, "0000:3b:00.0"), rankOn(2, "0000:3b:00.0"),
                    rankOn(3, "0000:5e:00.0")}),
              (std::vector<int32_t>{0, 1}));
}

TEST(SharedDevices, AreNotToldOfDevicesWhosePlaceNobodyKnows) {
    EXPECT_EQ(told({rankOn(0, ""), rankOn(1, "")}), std::vector<int32_t>{});
}

TEST(SharedDevices, AreNotThePartsOfOneDevice) {
    std::vector<RankSummary> ranks{rankOn(0, "0000:3b:00.0"), rankOn(1, "0000:3b:00.0")};
    for (RankSummary& rank : ranks) rank.devices.push_back({0, "NVIDIA H100 80GB HBM3 MIG 1g.10gb", {}, {}, {}});
    EXPECT_EQ(told(ranks), std::vector<int32_t>{});
}

}  // namespace
}  // namespace rankscope::collector
