// SPDX-License-Identifier: Apache-2.0
// Estimates what one communicator's operation takes at any size, from the times it was seen to take and what alpha-beta
// lines of NCCL's algorithms and protocols allow between and beyond them.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/costs/size_curve.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::costs {

/// Holds the times of one size, of the member that takes longest.
struct SizedPrice {
    double ns = 0;       // median
    double errorNs = 0;  // standard error of it
    AlgorithmChoice choice;
};

/// Holds what is known of the hop and of the rate under a communicator, whatever runs on it. `link` is what the links
/// were stated to do: no link is faster. A time beyond what the formulas allow at the stated rate is laid to the rate,
/// as far as `low` and `high` may be laid to the latency as well.
struct LinkState {
    LinkModel link;
    facts::Estimate alphaNs;     // per hop, of Simple
    facts::Estimate bytesPerNs;  // bus bandwidth of a choice that reaches all of it
};

/// Holds what NCCL may choose from.
struct ChoiceRules {
    std::vector<AlgorithmChoice> allowed;  // and known to be there
    std::vector<AlgorithmChoice> mayHave;  // allowed, but never seen on this hardware
};

class CollectivePrice {
  public:
    using Sizes = std::map<double, SizedPrice>;  // by bytes

    /// Holds times of the same on this hardware by nccl-tests; without points: none.
    struct Tables {
        SizeCurve ofSetting;                            // under the job's own setting
        std::map<AlgorithmChoice, SizeCurve> ofChoice;  // of one choice each
    };

    /// `link` is nothing where no latency or no bandwidth is stated.
    CollectivePrice(store::Op op, int ranks, Sizes sizes, const std::optional<LinkModel>& link, ChoiceRules rules,
                    Tables tables = {});

    /// Returns the time, ns, by the best evidence there is. A size that was seen takes what it took, and one between
    /// two seen ones that differ by less than SizeCurve::kSmallestRange lies on their curve. Else a table tells how
    /// much longer or shorter than the nearest seen size it takes. Else it follows the line of the choice that NCCL
    /// takes for this size: by a table of that choice, else through the sizes seen of it, where they differ enough,
    /// else from the nearest one with the latency of the formulas. NCCL chooses by the links as they were stated to be,
    /// within the rules, and consistently with what it was seen to choose; seen choices that this cannot explain were
    /// forced, and then there are no others. nullopt: sizes too alike and no links.
    std::optional<facts::Estimate> ns(double bytes) const;

    /// Returns the link as ns() takes it.
    std::optional<LinkState> state() const { return m_state; }

  private:
    static constexpr double kErrors = 2;  // standard errors that an interval holds

    static SizeCurve curveOf(const Sizes& sizes);
    void readChoices();
    void readState();
    void readLatency();
    void readShares();
    Range bandwidthOf(AlgorithmChoice choice, double bytes) const;
    Range knownLatencyHops(AlgorithmChoice choice) const;
    bool explained() const;
    Range healthyNs(AlgorithmChoice choice, double bytes) const;
    /// `any` allows whatever the evidence does; else what the formulas leave open at the expected hop.
    facts::Estimate latency(AlgorithmChoice choice, bool any) const;
    Range latencyHops(AlgorithmChoice choice) const;
    const Sizes* sizesOf(AlgorithmChoice choice) const;  // nullptr: never seen
    facts::Estimate concave(facts::Estimate price, const Sizes& sizes, double bytes) const;
    facts::Estimate seen(AlgorithmChoice choice, const Sizes& sizes, double bytes) const;
    facts::Estimate unseen(AlgorithmChoice choice, double bytes) const;
    facts::Estimate with(AlgorithmChoice choice, double bytes) const;
    bool fits(AlgorithmChoice choice, double bytes) const;
    std::vector<AlgorithmChoice> fitting(const std::vector<AlgorithmChoice>& choices, double bytes) const;
    static std::optional<facts::Estimate> byTable(const SizeCurve& table, const Sizes& sizes, double bytes);

    store::Op m_op;
    int m_ranks;
    Sizes m_sizes;
    SizeCurve m_curve;  // of these, whatever NCCL chose
    std::map<AlgorithmChoice, SizeCurve> m_curves;
    Tables m_tables;
    std::optional<LinkState> m_state;
    ChoiceRules m_rules;
    std::vector<std::pair<AlgorithmChoice, Sizes>> m_lines;  // by choice
    struct Shares {
        AlgorithmChoice choice;
        Range bandwidth, latency;  // places in what the formulas allow of the rate and of the hops
    };
    std::vector<Shares> m_shares;  // of what was seen
    bool m_free = false;           // NCCL's choices are its own
};

}  // namespace rankscope::costs
