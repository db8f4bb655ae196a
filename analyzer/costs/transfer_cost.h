// SPDX-License-Identifier: Apache-2.0
// What a collective would take with another algorithm or protocol, from the best evidence there is.
#pragma once

#include <optional>

#include "analyzer/costs/cost_evidence.h"
#include "analyzer/costs/protocol_startup.h"

namespace rankscope::costs {

/// Where an estimate comes from, best first.
enum class Basis : uint8_t {
    measuredHere,  // both choices ran in this trace on groups of this shape, at this size or around it
    sweep,         // both are in nccl-tests tables of this shape
    model,  // hops x alpha + bytes / bandwidth by NCCL's own tuning constants (nccl_formulas.h): good enough to try,
            // not to claim
};

/// Factors on the recorded transfer time, so that what disturbs the job's links stays in.
struct CostEstimate {
    facts::Estimate scale{1, 1, 1};
    Basis basis = Basis::model;
};

/// One collective of the job.
struct Message {
    GroupShape shape;
    int smallestNode = 1;  // fewest members on one node
    int64_t communicatorId = 0;
    store::Op op = store::Op::unknown;
    double bytes = 0;
    AlgorithmChoice present;
    double presentNs = 0;
    double sharedPart =
        0;  // of the present time, during which other collectives of its ranks were under way (shared_transfers.h)
};

class TransferCost {
  public:
    TransferCost(const LinkPeaks& peaks, const facts::TraceFacts& facts, const CostEvidence& evidence)
        : m_peaks(peaks), m_evidence(evidence), m_startup(peaks, facts, evidence) {}

    /// Nothing where neither measurements nor the model speak.
    std::optional<CostEstimate> of(const Message& message, AlgorithmChoice choice) const;

    /// What NCCL would choose by itself among `allowed` and what it `mayHave`, taken as the one that is estimated
    /// cheapest. Whichever it takes, it takes no longer than the best of the unfavourable ends of what it has.
    struct Chosen {
        AlgorithmChoice choice;
        CostEstimate cost;
    };
    std::optional<Chosen> cheapest(const Message& message, const std::vector<AlgorithmChoice>& allowed,
                                   const std::vector<AlgorithmChoice>& mayHave = {}) const;

    /// Of a message of another size: a bucket that is merged or split. As measured where the present choice's curve
    /// holds, else by the model with the cheapest of `allowed`, since NCCL chooses anew for the size.
    std::optional<Range> nsOfSize(const Message& like, double bytes, const std::vector<AlgorithmChoice>& allowed) const;

    /// The link under a group as peaks tell it, else as the fit of a measured choice does once its shares are taken
    /// out, else at least what the job reached.
    std::optional<LinkModel> linkOf(const Message& message) const;

  private:
    std::optional<CostEstimate> compared(const Message& message, AlgorithmChoice choice, EvidenceFrom from) const;
    facts::Estimate modelledNs(const LinkModel& link, const Message& message, double explainedNs,
                               AlgorithmChoice choice) const;
    std::optional<CostEstimate> modelled(const Message& message, AlgorithmChoice choice) const;

    const LinkPeaks& m_peaks;
    const CostEvidence& m_evidence;
    ProtocolStartup m_startup;
};

}  // namespace rankscope::costs
