// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/message_ends.h"

#include <algorithm>
#include <map>

namespace rankscope::collector {
namespace {

/// The two sides of a message leave within a few microseconds: a kernel that ended less than this before may still have
/// ended by the same message.
constexpr int64_t kSameEndNs = 5'000;

/// Sends and receives of all kernels that carry any.
class MessageKernels {
  public:
    using Key = std::pair<int32_t, int64_t>;  // summary, kernel

    MessageKernels(const std::vector<RankSummary>& summaries, const std::vector<MessagePair>& messages,
                   const std::vector<int32_t>& hostOfSummary)
        : m_summaries(summaries), m_hostOfSummary(hostOfSummary) {
        for (const MessagePair& message : messages) {
            if (message.sendCall < 0 || message.recvCall < 0) continue;
            const Key sender = keyOf(message.sendSummary, message.sendCall);
            const Key receiver = keyOf(message.recvSummary, message.recvCall);
            if (sender.second < 0 || receiver.second < 0) continue;
            add(sender, receiver, message.sendCall);
            add(receiver, sender, message.recvCall);
        }
        for (size_t s = 0; s < summaries.size(); ++s)
            for (const CallFact& call : summaries[s].calls)
                if (const auto kernel = m_kernels.find({static_cast<int32_t>(s), call.kernelIndex});
                    kernel != m_kernels.end())
                    ++kernel->second.calls;
    }

    Key keyOf(int32_t summary, int32_t call) const {
        return {summary, m_summaries[static_cast<size_t>(summary)].calls[static_cast<size_t>(call)].kernelIndex};
    }
    int32_t hostOf(const Key& key) const { return m_hostOfSummary[static_cast<size_t>(key.first)]; }

    /// Does this kernel end with its messages to and from `peer`?
    bool endsWith(const Key& key, const Key& peer) const {
        const auto kernel = m_kernels.find(key);
        if (kernel == m_kernels.end() || kernel->second.calls != static_cast<int64_t>(kernel->second.peers.size()))
            return false;
        return std::all_of(kernel->second.peers.begin(), kernel->second.peers.end(), [&](const Key& other) {
            if (other == peer || other == key) return true;
            return hostOf(other) == hostOf(key) && m_kernels.at(other).endNs < kernel->second.endNs - kSameEndNs;
        });
    }

  private:
    struct Kernel {
        int64_t endNs = 0;
        int64_t calls = 0;
        std::vector<Key> peers;  // one for each message
    };

    void add(const Key& key, const Key& peer, int32_t call) {
        Kernel& kernel = m_kernels[key];
        kernel.endNs = m_summaries[static_cast<size_t>(key.first)].calls[static_cast<size_t>(call)].endNs;
        kernel.peers.push_back(peer);
    }

    const std::vector<RankSummary>& m_summaries;
    const std::vector<int32_t>& m_hostOfSummary;
    std::map<Key, Kernel> m_kernels;
};

}  // namespace

std::vector<MessagePair> messagesThatEndTogether(const std::vector<RankSummary>& summaries,
                                                 const std::vector<MessagePair>& messages,
                                                 const std::vector<int32_t>& hostOfSummary) {
    const MessageKernels kernels(summaries, messages, hostOfSummary);
    std::vector<MessagePair> together;
    for (const MessagePair& message : messages) {
        if (message.sendCall < 0 || message.recvCall < 0) continue;
        const MessageKernels::Key sender = kernels.keyOf(message.sendSummary, message.sendCall);
        const MessageKernels::Key receiver = kernels.keyOf(message.recvSummary, message.recvCall);
        if (kernels.hostOf(sender) != kernels.hostOf(receiver) && kernels.endsWith(sender, receiver) &&
            kernels.endsWith(receiver, sender))
            together.push_back(message);
    }
    return together;
}

}  // namespace rankscope::collector
