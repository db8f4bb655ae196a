// SPDX-License-Identifier: Apache-2.0
// Says what a collective or a message of a job takes: the one place that is asked, whatever the evidence.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "analyzer/costs/collective_price.h"
#include "analyzer/costs/cost_evidence.h"
#include "analyzer/costs/nccl_setting.h"
#include "analyzer/costs/table_trust.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::costs {

/// Knows what a hop of LL and LL128 costs on this hardware, where collectives of the trace tell. Their shares of a
/// Simple hop lie in ranges (nccl_formulas.h); a place in a range is 0 at its low end and 1 at its high end.
class ProtocolLatency {
  public:
    ProtocolLatency() = default;
    /// Reads the places of choices that ran where the configured links give the latency of Simple.
    ProtocolLatency(const LinkPeaks& peaks, const facts::TraceFacts& facts, const CostEvidence& evidence);

    /// Returns the place of a protocol on groups of a shape: known within half of the range from the same protocol with
    /// another algorithm; within what NCCL's own table has of LL against LL128 from the other one; else anywhere.
    facts::Estimate of(GroupShape shape, store::Protocol protocol) const;

  private:
    /// Holds the place that a measured time speaks for.
    struct Known {
        double place = 0.5;
        double doubt = 1;  // width of what is consistent with the time
    };
    const Known* known(GroupShape shape, store::Protocol protocol) const;

    std::map<std::pair<GroupShape, store::Protocol>, Known> m_known;  // by the time that tells most
};

/// Says where an estimate comes from, best first.
enum class Basis : uint8_t {
    measuredHere,  // both choices ran in this trace on groups of this shape, at this size or around it
    sweep,         // both are in nccl-tests tables of this shape, as choices or as settings that leave them to NCCL
    otherVersion,  // so they are, but a table was measured with another NCCL than the job's: good enough to try
    model,  // hops x alpha + bytes / bandwidth by NCCL's own tuning constants (nccl_formulas.h): good enough to try,
            // not to claim
};

/// Holds factors on the recorded transfer time, so that what disturbs the job's links stays in.
struct CostEstimate {
    facts::Estimate scale{1, 1, 1};
    Basis basis = Basis::model;
};

/// Describes one collective of the job.
struct Message {
    GroupShape shape;
    int smallestNode = 1;  // fewest members on one node
    store::Op op = store::Op::unknown;
    double bytes = 0;
    AlgorithmChoice present;
    double presentNs = 0;
    double sharedPart = 0;  // of the present time, beside other collectives of its ranks (sharedTransfers())
};

class CollectiveCost {
  public:
    struct Chosen {
        AlgorithmChoice choice;
        CostEstimate cost;
    };

    /// Knows nothing of any job.
    CollectiveCost() = default;
    /// Reads the collectives of a job, the peaks of its links and those of the nccl-tests tables that can be trusted.
    CollectiveCost(const facts::TraceFacts& facts, const LinkPeaks& peaks,
                   const std::vector<NcclTestsTable>& tables = {})
        : CollectiveCost(facts, peaks, trustedTables(tables, peaks, facts)) {}

    /// Returns what a communicator's operation takes at any size by the times of some, which may be those of a changed
    /// job. NCCL chooses as the job's variables let it.
    CollectivePrice price(const facts::Communicator& communicator, store::Op op, CollectivePrice::Sizes sizes) const;

    /// Returns latency and time per byte of a communicator's operation, as reports, findings and charts say them: one
    /// number for each. nullptr where sizes hardly differ and no peak is known.
    const CostFit* line(int64_t communicator, store::Op op) const;
    const std::vector<CostFit>& lines() const { return m_lines; }

    /// Returns all that was measured, by algorithm and protocol.
    const CostEvidence& evidence() const { return m_evidence; }

    /// Estimates the message with another algorithm or protocol, by the best evidence there is: what this job's own
    /// messages took, then tables of nccl-tests, then the model, which is held to what tables say of settings that
    /// leave a part of the choice to NCCL. Nothing where none of them speaks.
    std::optional<CostEstimate> of(const Message& message, AlgorithmChoice choice) const;

    /// Returns what NCCL makes of the message under a setting that leaves algorithm, protocol or both to it: by a table
    /// that was measured so, against one that stands for the message as it is. The choice is unknown where NCCL's is.
    /// Between two sizes that ran different choices, as the tables of these tell, NCCL takes the one or the other, and
    /// never a middle: the one that its formulas have faster, and the interval holds both. Nothing where there are no
    /// such tables, or where the setting names both or several.
    std::optional<Chosen> under(const Message& message, const FunctionRule& rule) const;

    /// Returns the table that stands for the message as it is: of the choice it runs with, else of a setting under
    /// which NCCL comes to that choice. It came to it among all that the job's variables allow, and so it does among
    /// fewer. nullptr where there is none.
    const CostCurve* presentTable(const Message& message) const;

    /// Returns the table of the job's own setting, which says what NCCL's choices take at any size; nullptr: none.
    const CostCurve* settingTable(GroupShape shape, store::Op op) const;

    /// Returns what is to be known of the tables: the sizes to avoid, what contradicts, what is not used and why.
    /// `facts` are those of the job.
    std::vector<TableNote> tableNotes(const facts::TraceFacts& facts) const;

    /// Returns what NCCL would choose by itself among `allowed` and what it `mayHave`: by its own table, which knows no
    /// more than the formulas do. It may be any choice that the formulas have nearly as fast as the fastest; what each
    /// takes is told by the best evidence there is.
    std::optional<Chosen> chosenByNccl(const Message& message, const std::vector<AlgorithmChoice>& allowed,
                                       const std::vector<AlgorithmChoice>& mayHave = {}) const;

    /// Returns the link under a group as the peaks have it, with the usual latency where they have none; else as the
    /// line through the times of the present choice has it once its shares are taken out; else at least what the job
    /// reached. The shares are ranges, of which the link gets the end most favourable to the present choice: the least
    /// link that explains the times, so that what another choice is claimed to gain on it holds whatever the link
    /// really is.
    std::optional<LinkModel> linkOf(const Message& message) const;

  private:
    CollectiveCost(const facts::TraceFacts& facts, const LinkPeaks& peaks, TrustedTables trusted)
        : m_peaks(peaks),
          m_setAside(std::move(trusted.setAside)),
          m_evidence(facts, trusted.tables),
          m_latency(peaks, facts, m_evidence),
          m_lines(fitCosts(facts, peaks)),
          m_version(ncclVersionOf(facts)),
          m_forced(NcclSetting::parse(facts.text("env.NCCL_ALGO"), facts.text("env.NCCL_PROTO"))) {}

    std::optional<CostEstimate> compared(const Message& message, AlgorithmChoice choice, EvidenceFrom from) const;
    const CostCurve* table(GroupShape shape, store::Op op, AlgorithmChoice setting) const;
    /// Returns the table of the one choice that explains a time measured under `rule`; nullptr where none does.
    const CostCurve* tableBehind(const SizedTime& time, const Message& message, const FunctionRule& rule) const;
    /// Returns the factor where NCCL changes its choice between the two sizes of `mixed` around the message; nothing
    /// where it does not, or where no tables tell.
    std::optional<facts::Estimate> betweenChoices(const Message& message, const FunctionRule& rule,
                                                  const CostCurve& mixed) const;
    /// Returns why nothing rests on a curve of tables; empty where something does.
    std::string whyUnused(const CostCurve& curve, const facts::TraceFacts& facts) const;
    CostEstimate heldToTables(const Message& message, AlgorithmChoice choice, CostEstimate estimate) const;
    /// Returns what the formulas allow, without their error.
    facts::Estimate modelledNs(const LinkModel& link, const Message& message, double explainedNs,
                               AlgorithmChoice choice) const;
    std::optional<CostEstimate> modelled(const Message& message, AlgorithmChoice choice) const;

    LinkPeaks m_peaks;
    std::vector<TableNote> m_setAside;  // tables that are no evidence
    CostEvidence m_evidence;
    ProtocolLatency m_latency;
    std::vector<CostFit> m_lines;
    std::optional<NcclVersion> m_version;
    NcclSetting m_forced;
};

}  // namespace rankscope::costs
