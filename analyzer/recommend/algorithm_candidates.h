// SPDX-License-Identifier: Apache-2.0
// Settings of NCCL_ALGO, NCCL_PROTO or a tuner table, and what they make of each collective.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "analyzer/costs/nccl_setting.h"
#include "analyzer/recommend/advice_context.h"
#include "analyzer/recommend/message_list.h"

namespace rankscope::recommend {

/// How the collectives of each key would run, for those that change.
struct Outcome {
    std::map<MessageKey, costs::CollectiveCost::Chosen> changed;
    costs::Basis weakest = costs::Basis::measuredHere;  // of the estimates in it

    /// Factors on the recorded transfers.
    enum class Side { expected, pessimistic, optimistic };
    TransferScale scale(Side side) const;
};

struct PresentSetting {
    bool algoForced = false;  // NCCL_ALGO is set in the job's environment
    bool protoForced = false;
    costs::NcclSetting rules;  // what they say
    bool any() const { return algoForced || protoForced; }
};
PresentSetting presentSetting(const job::Analysis& analysis);

class AlgorithmCandidates {
  public:
    AlgorithmCandidates(const AdviceContext& context, MessageList messages);

    /// The same for a job whose messages have changed: what NCCL passed over is told by those that ran.
    AlgorithmCandidates of(MessageList messages) const;

    const std::vector<MessageGroup>& groups() const { return m_messages.groups; }
    std::vector<store::Op> ops() const;
    /// What NCCL might choose of its own accord although it was never seen here: not at all, as it is expected, or at
    /// the unfavourable end of its estimate.
    enum class Unseen { absent, expected, unfavourable };
    /// With both variables as `setting` says instead of as they are. Nothing where NCCL would be left without a choice
    /// for a collective of the job.
    std::optional<Outcome> with(const costs::NcclSetting& setting, Unseen unseen = Unseen::expected) const;
    /// Rules worth a look for one function: each algorithm, each protocol, each pair that some group of the job
    /// supports.
    std::vector<costs::FunctionRule> rulesFor(store::Op op) const;
    /// Every collective with the choice that is cheapest at the unfavourable end of its estimate: what a tuner table
    /// can do.
    Outcome eachAtItsBest() const;
    /// The table for an outcome: neighbouring sizes with one choice become one range.
    std::vector<TunerAdvice> tableOf(const Outcome& outcome) const;

  private:
    void addSupported();
    const std::vector<costs::AlgorithmChoice>& supported(const MessageGroup& group) const;
    /// What NCCL may take of its own accord under `rule`, although it never ran here: nothing where it was free to and
    /// passed over a clear gain.
    std::vector<costs::AlgorithmChoice> mayTake(const MessageGroup& group, const costs::FunctionRule& rule) const;
    bool passedOver(store::Protocol protocol) const;

    const AdviceContext& m_context;
    MessageList m_messages;
    PresentSetting m_present;
    std::map<std::pair<store::Op, costs::GroupShape>, std::vector<costs::AlgorithmChoice>> m_supported;
    std::set<store::Protocol> m_passedOver;  // NCCL was free to take them and left a clear gain lie
};

/// What the settings of NCCL in `settings` make of a job's collectives; empty where they set none. `context` must
/// outlive it.
TransferChange transferChangeOf(const AdviceContext& context, const Settings& settings);

}  // namespace rankscope::recommend
