// SPDX-License-Identifier: Apache-2.0
// Tells what the messages of a group take each. A kernel that carries sends and receives to several peers shows only
// when the last of them is done.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rankscope::replay {

/// Describes a message and the kernels at its ends. Times are those of the recording, ns.
struct MessageEnds {
    uint32_t sendKernel = 0;  // numbers of kernels: any, the same for the same kernel
    uint32_t receiveKernel = 0;
    int senderRank = 0;
    int receiverRank = 0;
    int64_t bytes = -1;
    int64_t joinedNs = 0;  // both kernels have begun
    int64_t sendEndNs = 0;
    int64_t receiveEndNs = 0;
};

inline constexpr int64_t kUnknownMessageNs = -1;

/// Returns by message what it took, ns, from when both kernels had begun. It is seen where one of its kernels has no
/// other peer, or all other peers' kernels have ended before that one: then the kernel ended with this message. Else
/// kUnknownMessageNs.
std::vector<int64_t> shownTimes(std::span<const MessageEnds> messages);

/// Returns by message the shortest time that is shown of this size between these ranks, ns: nothing held that one up.
/// kUnknownMessageNs where none is.
std::vector<int64_t> messageTimes(std::span<const MessageEnds> messages);

}  // namespace rankscope::replay
