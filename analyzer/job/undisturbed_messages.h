// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/job/analysis.h"

namespace rankscope::job {

/// A message of known size that had its links for itself, and what it took from the later arrival of its two ranks, ns.
struct UndisturbedMessage {
    const store::P2p* row = nullptr;
    double ns = 0;
};

/// Messages whose kernels on both ranks run beside no other one of the rank, and carry nothing else, or a group in
/// which no other message takes the same way out of its sender or into its receiver (inside the node, or to other
/// nodes). Of a group those only whose end a kernel shows (message_times.h).
std::vector<UndisturbedMessage> undisturbedMessages(const Analysis& analysis);

}  // namespace rankscope::job
