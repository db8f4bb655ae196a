// SPDX-License-Identifier: Apache-2.0
// Settings of NCCL_ALGO, NCCL_PROTO or a tuner table, and what they make of each collective.
#pragma once

#include <map>
#include <vector>

#include "analyzer/recommend/advice_context.h"
#include "analyzer/recommend/message_list.h"
#include "analyzer/recommend/nccl_setting.h"

namespace rankscope::analyzer {

/// How the collectives of each key would run, for those that change.
struct Outcome {
    std::map<MessageKey, TransferCost::Chosen> changed;
    Basis weakest = Basis::measuredHere;  // of the estimates in it

    /// Factors on the recorded transfers.
    enum class Side { expected, pessimistic, optimistic };
    TransferScale scale(Side side) const;
};

struct PresentSetting {
    bool algoForced = false;   // NCCL_ALGO is set in the job's environment
    bool protoForced = false;
    NcclSetting rules;         // what they say
    bool any() const { return algoForced || protoForced; }
};
PresentSetting presentSetting(const Analysis& analysis);

class AlgorithmCandidates {
  public:
    AlgorithmCandidates(const AdviceContext& context, MessageList messages);

    const std::vector<MessageGroup>& groups() const { return m_messages.groups; }
    std::vector<store::Op> ops() const;
    /// With both variables as `setting` says instead of as they are. Nothing where NCCL would be left without a choice for a collective of the job.
    std::optional<Outcome> with(const NcclSetting& setting) const;
    /// Rules worth a look for one function: each algorithm, each protocol, each pair that some group of the job supports.
    std::vector<FunctionRule> rulesFor(store::Op op) const;
    /// Every collective with the choice that is cheapest at the unfavourable end of its estimate: what a tuner table can do.
    Outcome eachAtItsBest() const;
    /// The table for an outcome: neighbouring sizes with one choice become one range.
    std::vector<TunerAdvice> tableOf(const Outcome& outcome) const;

  private:
    const std::vector<AlgorithmChoice>& supported(const MessageGroup& group) const;

    const AdviceContext& m_context;
    MessageList m_messages;
    PresentSetting m_present;
    std::map<std::pair<store::Op, GroupShape>, std::vector<AlgorithmChoice>> m_supported;
};

}  // namespace rankscope::analyzer
