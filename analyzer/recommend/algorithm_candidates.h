// SPDX-License-Identifier: Apache-2.0
// Settings of NCCL_ALGO, NCCL_PROTO or a tuner table: who set them, and what they make of each collective.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyzer/costs/algorithm_support.h"
#include "analyzer/costs/nccl_setting.h"
#include "analyzer/recommend/advice_context.h"

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
    std::vector<std::string> forced;  // those of NCCL_ALGO and NCCL_PROTO that the job's environment sets
    costs::NcclSetting rules;         // what they say
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
    /// With both variables as `setting` says instead of as they are: by tables that were measured so where there are
    /// some, else by what NCCL would choose. Nothing where NCCL would be left without a choice
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

enum class SettingOrigin : uint8_t {
    unknown,  // an import, or a launcher outside: nobody saw what the user's shell held
    shell,    // it stood in the environment that `rankscope run` was started from
    option,   // --env of `rankscope run`
    job,      // it did not: the job's own script, its launcher's options
};

SettingOrigin originOf(const facts::TraceFacts& facts, const std::string& variable);

/// The variable's state in a user's shell that leaves the choice to NCCL: nothing to unset it; else empty. NCCL 2.24
/// and newer take an empty list for none at all (parseList in src/graph/tuning.cc), and it holds where an absent
/// variable would be set again: by a job that sets what is not set, and by nccl.conf, which NCCL reads with setenv(…,
/// 0). Older ones take it for 'nothing allowed'.
std::optional<std::string> givenBack(const facts::TraceFacts& facts, const std::string& variable,
                                     const std::optional<costs::NcclVersion>& nccl);

/// "NCCL_PROTO=LL is in the environment …", and where its change to `then` has to be made.
std::string originText(const facts::TraceFacts& facts, const std::string& variable,
                       const std::optional<std::string>& then);

}  // namespace rankscope::recommend
