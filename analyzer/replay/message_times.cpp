// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/message_times.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace rankscope::replay {
namespace {

/// The two sides of a message leave within a few microseconds: a peer that ended less than this before may have ended
/// with the same one.
constexpr int64_t kSameEndNs = 5'000;

/// Shows a message as one of its kernels sees it.
struct Side {
    uint32_t kernel = 0;
    uint32_t peer = 0;
    uint32_t message = 0;
    bool late = false;  // its peer leaves no earlier than this kernel
};

std::vector<Side> sidesByKernel(std::span<const MessageEnds> messages) {
    std::vector<Side> sides;
    sides.reserve(2 * messages.size());
    for (uint32_t i = 0; i < messages.size(); ++i) {
        const MessageEnds& m = messages[i];
        sides.push_back({m.sendKernel, m.receiveKernel, i, m.receiveEndNs >= m.sendEndNs - kSameEndNs});
        sides.push_back({m.receiveKernel, m.sendKernel, i, m.sendEndNs >= m.receiveEndNs - kSameEndNs});
    }
    std::ranges::sort(sides, [](const Side& a, const Side& b) {
        return std::tie(a.kernel, a.peer, a.message) < std::tie(b.kernel, b.peer, b.message);
    });
    return sides;
}

}  // namespace

std::vector<int64_t> shownTimes(std::span<const MessageEnds> messages) {
    std::vector<int64_t> times(messages.size(), kUnknownMessageNs);
    const std::vector<Side> sides = sidesByKernel(messages);
    for (size_t first = 0, last = 0; first < sides.size(); first = last) {
        const Side* late = nullptr;
        bool several = false;
        for (last = first; last < sides.size() && sides[last].kernel == sides[first].kernel; ++last) {
            if (!sides[last].late) continue;
            several = several || (late != nullptr && late->peer != sides[last].peer);
            late = &sides[last];
        }
        if (late == nullptr || several) continue;
        for (size_t i = first; i < last; ++i) {
            const MessageEnds& m = messages[sides[i].message];
            const int64_t ns = std::min(m.sendEndNs, m.receiveEndNs) - m.joinedNs;
            if (sides[i].peer == late->peer && ns >= 0)
                times[sides[i].message] = ns;  // else it had left before its peer came
        }
    }
    return times;
}

std::vector<int64_t> messageTimes(std::span<const MessageEnds> messages) {
    using Kind = std::tuple<int, int, int64_t>;
    const auto kindOf = [](const MessageEnds& m) { return Kind(m.senderRank, m.receiverRank, m.bytes); };
    std::vector<int64_t> times = shownTimes(messages);
    std::map<Kind, int64_t> shortest;
    for (size_t i = 0; i < messages.size(); ++i) {
        if (times[i] == kUnknownMessageNs) continue;
        const auto [known, isNew] = shortest.try_emplace(kindOf(messages[i]), times[i]);
        if (!isNew) known->second = std::min(known->second, times[i]);
    }
    for (size_t i = 0; i < messages.size(); ++i) {
        const auto known = shortest.find(kindOf(messages[i]));
        times[i] = known == shortest.end() ? kUnknownMessageNs : known->second;
    }
    return times;
}

}  // namespace rankscope::replay
