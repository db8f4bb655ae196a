// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/reached_share.h"

#include "analyzer/costs/device_links.h"

namespace rankscope::costs {
namespace {

struct MediumShare {
    Range share;  // of the rate by specification
    const char* what;
};

// Large messages of rings in published nccl-tests tables. What reaches less is worth a look, whoever says that it is
// usual: sockets where there is a network card of that rate, host memory where devices have peer access.
const MediumShare& shareOf(LinkMedium medium) {
    // 235 of 300 GB/s on eight A100, 366 of 450 on H100, 338 of 450 on GH200, 698 of 900 on B200.
    static constexpr MediumShare kNvlink{{0.75, 0.82}, "NVLink by nccl-tests: 0.75 (GH200), 0.78 (A100), 0.82 (H100)"};
    static constexpr MediumShare kInfinityFabric{{0.7, 0.82}, "Infinity Fabric by rccl-tests: 0.7 (MI300X)"};
    // 15 of 31.5 GB/s on L40S, whose rings cross the sockets; NCCL itself counts on 24.
    static constexpr MediumShare kPcie{{0.48, kPcieShare}, "PCIe by nccl-tests: 0.48 (L40S) to 0.76"};
    // 2.2 and 3.9 of 31.5 GB/s on two RTX 4090, 2.6 on four, 2.5 of 15.75 on eight RTX 2080 Ti. Broadcasts of two reach
    // 0.7, and so does what a driver gives peer access to.
    static constexpr MediumShare kHostMemory{{0.07, kPcieShare},
                                             "host memory by nccl-tests, of PCIe: 0.07 (two RTX 4090) to 0.76"};
    // 178 to 182 of 200 GB/s on two nodes of eight A100, 388 of 400 on H100 and B200.
    static constexpr MediumShare kInfiniband{{0.89, 0.97}, "InfiniBand by nccl-tests: 0.89 (A100) to 0.97 (B200)"};
    // 0.58 of 100 Gbit/s EFA (V100), 0.64 of 400 Gbit/s RoCE with one card, 0.95 of 200 (GB10).
    static constexpr MediumShare kEthernet{{0.58, 0.95}, "Ethernet by nccl-tests: 0.58 (EFA) to 0.95 (RoCE)"};
    // Slingshot: 0.73 on A100, 0.92 on GH200. Slower ones are the exception that a user's rate of an unnamed network
    // need not mean.
    static constexpr MediumShare kNetwork{{0.73, 0.97},
                                          "networks by nccl-tests: 0.73 (Slingshot) to 0.97 (InfiniBand)"};
    switch (medium) {
        case LinkMedium::nvlink:
            return kNvlink;
        case LinkMedium::infinityFabric:
            return kInfinityFabric;
        case LinkMedium::pcie:
            return kPcie;
        case LinkMedium::hostMemory:
            return kHostMemory;
        case LinkMedium::infiniband:
            return kInfiniband;
        case LinkMedium::ethernet:
            return kEthernet;
        case LinkMedium::unknown:
            break;
    }
    return kNetwork;
}

bool isPcieRate(double gbps) {
    return gbps < kSlowestNvlink || (gbps > kPcie5Gbps - 1 && gbps <= kPcie5Gbps + 1);
}

}  // namespace

LinkMedium mediumOf(const LinkClass& link, bool betweenNodes) {
    if (link.medium != LinkMedium::unknown || betweenNodes) return link.medium;
    return isPcieRate(link.bytesPerNs) ? LinkMedium::pcie : LinkMedium::nvlink;
}

ReachedShare reachedShare(const LinkClass& link, bool betweenNodes) {
    if (link.kind == PeakKind::measured || link.kind == PeakKind::atLeast) return {};
    const LinkMedium medium = mediumOf(link, betweenNodes);
    const auto& [share, what] = shareOf(medium);
    ReachedShare reached{share, what};
    if (link.kind == PeakKind::told)
        reached.share.high = 1;
    else if (isPcie(medium))  // the machine's and the table's rates are what NCCL counts
        reached.share = {share.low / kPcieShare, share.high / kPcieShare};
    return reached;
}

ReachedShare ceilingShare(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op) {
    const std::optional<LinkPeaks::Ceiling> ceiling = peaks.ceiling(communicator, op);
    return ceiling ? reachedShare(*ceiling->link, ceiling->betweenNodes) : ReachedShare{};
}

}  // namespace rankscope::costs
