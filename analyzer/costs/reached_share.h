// SPDX-License-Identifier: Apache-2.0
// Says which share of a link's rate NCCL reaches with large messages: the one place that knows, for verdicts on a link
// and for ceilings.
#pragma once

#include <string>

#include "analyzer/costs/link_peaks.h"

namespace rankscope::costs {

/// Holds the share of a rate that a healthy link of its kind carries: from what the least of published machines reach
/// to the most. Both are 1 where the rate is one that was reached.
struct ReachedShare {
    Range share{1, 1};
    std::string what;  // whose share it is and by whose numbers, for a reader: "NVLink: nccl-tests reach ..."; empty: 1
};

/// Returns it by the medium and by how the rate is known. A specification tells what the line carries; a told rate may
/// be one, or what nccl-tests reached, so that its share goes up to 1; measured ones and lower bounds were reached.
ReachedShare reachedShare(const LinkClass& link, bool betweenNodes);

/// Returns that of the class that sets a communicator's ceiling; {1, 1} where there is none.
ReachedShare ceilingShare(const LinkPeaks& peaks, const facts::Communicator& communicator,
                          store::Op op = store::Op::unknown);

/// Returns the medium that a source tells. Inside a node, where none does, and only there, the rate is read as one:
/// PCIe is what is slower than any NVLinks, and PCIe 5.0's rate, which is called 63 or 64.
LinkMedium mediumOf(const LinkClass& link, bool betweenNodes);

/// PCIe 4.0 and 5.0 by 16 lanes, in one direction; NVLinks of a device have 50 GB/s and more, in steps of 25 or so.
inline constexpr double kPcieGbps = 31.5, kPcie5Gbps = 63, kSlowestNvlink = 40;

}  // namespace rankscope::costs
