// SPDX-License-Identifier: Apache-2.0
// Holds what was measured of collectives: transfer times by shape of the group, operation, algorithm and protocol, from
// the trace and from nccl-tests. The two sources are never mixed in one comparison: a test's time holds launches that a
// trace's does not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/costs/algorithm_support.h"
#include "analyzer/costs/cost_fit.h"
#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/costs/size_curve.h"
#include "analyzer/costs/table_evidence.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::costs {

enum class EvidenceFrom : uint8_t { trace, ncclTests };

struct CurveKey {
    EvidenceFrom from = EvidenceFrom::trace;
    GroupShape shape;
    store::Op op = store::Op::unknown;
    AlgorithmChoice choice;  // of a table its setting: what is unknown NCCL chose by itself

    auto operator<=>(const CurveKey&) const = default;
};

struct CostCurve {
    CurveKey key;
    TimesBySize timesBySize;
    std::vector<std::string> files;  // of nccl-tests
    bool otherVersion = false;       // some of these were measured with another NCCL than the job's
    std::optional<CostLine> line;    // none: sizes hardly differ
    std::string group;               // whose line that is where findings and the chart rest on it: "data parallel 0-7"
    SizeCurve sizes;                 // that were measured often enough, of tables those that tell of the links

    size_t samples() const;
    double totalNs() const { return costs::totalNs(timesBySize); }
    /// Returns the time, ns, with what the samples and the size leave open. Nothing beyond kExtrapolation of the sizes
    /// measured.
    std::optional<facts::Estimate> at(double bytes) const;

    static constexpr size_t kFewestAtOneSize = 3;
    static constexpr double kExtrapolation = 2;  // NCCL changes chunks and channels with the size
};

/// The curve that a table is part of.
CurveKey keyOf(const NcclTestsTable& table);

class CostEvidence {
  public:
    CostEvidence() = default;
    CostEvidence(const facts::TraceFacts& facts, const std::vector<NcclTestsTable>& tables);

    const CostCurve* find(const CurveKey& key) const;
    const std::map<CurveKey, CostCurve>& curves() const { return m_curves; }
    /// Returns what is to be known of the tables by themselves, and the sizes to avoid.
    std::vector<TableNote> notes(const std::optional<NcclVersion>& version) const;
    const std::vector<NcclTestsTable>& tables() const { return m_tables; }
    /// Returns the algorithms and protocols that ran on this hardware.
    const SeenChoices& seen() const { return m_seen; }

  private:
    void add(const CurveKey& key, double bytes, double ns);
    std::map<CurveKey, CostCurve> m_curves;
    std::vector<NcclTestsTable> m_tables;
    SeenChoices m_seen;
};

/// Tells which transfers had the links to themselves: one that another slows down tells of the links' load as much as
/// of its own protocol. Returns by id of a collective the share of its transfer during which a rank of it had another
/// communicator's collective under way as well; the busiest rank counts. Those that had none are not in it.
std::map<int64_t, double> sharedTransfers(const facts::TraceFacts& facts);

}  // namespace rankscope::costs
