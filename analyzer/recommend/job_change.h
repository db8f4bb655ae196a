// SPDX-License-Identifier: Apache-2.0
// What a setting changes of the job, so that a replay can make it on top of others, and the collectives it is made to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/costs/collective_cost.h"
#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/edits/edit.h"
#include "analyzer/job/analysis.h"

namespace rankscope::recommend {

/// Collectives that are one and the same to NCCL's choice.
struct MessageKey {
    int64_t communicatorId = 0;
    store::Op op = store::Op::unknown;
    int64_t bytes = 0;
    costs::AlgorithmChoice choice;

    auto operator<=>(const MessageKey&) const = default;
};

/// Holds all collectives of the analysed steps that are one to NCCL's choice.
struct MessageGroup {
    MessageKey key;
    costs::Message message;  // presentNs: the median
    double count = 0;        // per step, mean
    double totalNs = 0;      // of all
};

/// Has groups by key. `unknown` counts collectives whose algorithm or protocol nothing tells.
struct MessageList {
    std::vector<MessageGroup> groups;
    int64_t unknown = 0;
};

/// New transfer time as a multiple of the present one; 1: unchanged.
using TransferScale = std::function<double(const MessageKey&)>;

/// As expected, and at the ends of what the estimate allows.
struct TransferScales {
    TransferScale expected, pessimistic, optimistic;
};

/// What another choice of NCCL's makes of a job's collectives. It is asked anew for the messages of a job that has
/// changed otherwise: other buckets have other sizes. Nothing where NCCL would be left without a choice.
struct TransferChange {
    std::string name;  // of the choice: the same for the same one
    std::function<std::optional<TransferScales>(const MessageList&)> of;

    explicit operator bool() const { return static_cast<bool>(of); }
};

struct JobChange {
    std::vector<std::string> edits;  // as `rankscope whatif --change` spells them, one after the other
    TransferChange transfers;        // empty: as they are

    bool empty() const { return edits.empty() && !transfers; }
};

/// The key of what has all its members: a collective of a graph or of a rank.
MessageKey keyOf(const auto& collective) {
    return {collective.communicatorId, collective.op, collective.bytes, {collective.algorithm, collective.protocol}};
}

/// Lists the collectives that NCCL chooses an algorithm for, whose transfer is known.
MessageList messagesOf(const job::Analysis& analysis);

/// Lists those of a job that has changed: `graph` with all its messages; an analysis and its messages as recorded.
MessageList messagesOf(const job::Analysis& analysis, const MessageList& recorded, const replay::TaskGraph& graph);

/// The collectives of a graph by what is one to NCCL's choice, to be played with another one again and again.
class ScaledTransfers {
  public:
    /// Of a job whose graph, effect and steps (ns at equal tokens) these are; all must outlive it.
    ScaledTransfers(const job::Analysis& analysis, const replay::TaskGraph& graph, const edits::EditEffect& effect,
                    const std::vector<double>& stepsNs);

    /// Step times of the analysed steps with every transfer scaled, ns at equal tokens. Factors that were played before
    /// are looked up.
    const std::vector<double>& stepsNs(const TransferScale& scale);

  private:
    /// A kernel that carries several collectives takes the mean of their factors by bytes.
    std::vector<int64_t> durations(const std::vector<double>& factors) const;

    struct Transfer {
        replay::TaskId task = replay::kNoTask;
        uint32_t key = 0;  // index into m_keys
    };

    const job::Analysis& m_analysis;
    const replay::TaskGraph& m_graph;
    const edits::EditEffect& m_effect;
    const std::vector<double>& m_unscaledNs;  // by step
    std::vector<MessageKey> m_keys;
    std::vector<Transfer> m_transfers;                             // by task
    std::map<std::vector<double>, std::vector<double>> m_stepsNs;  // by the factors of the keys
};

}  // namespace rankscope::recommend
