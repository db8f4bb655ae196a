// SPDX-License-Identifier: Apache-2.0
// What was measured of collectives: transfer times by shape of the group, operation, algorithm and protocol, from the
// trace and from nccl-tests, with the pieces fitted through them. The two sources are never mixed in one comparison: a
// test's time holds launches that a trace's does not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/costs/algorithm_support.h"
#include "analyzer/costs/cost_fit.h"
#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/costs/piecewise_fit.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::costs {

enum class EvidenceFrom : uint8_t { trace, ncclTests };

struct CurveKey {
    EvidenceFrom from = EvidenceFrom::trace;
    GroupShape shape;
    store::Op op = store::Op::unknown;
    AlgorithmChoice choice;  // unknown algorithm and protocol: what NCCL chose by itself, not told which

    auto tie() const { return std::tuple(from, shape, op, choice.algorithm, choice.protocol); }
    bool operator<(const CurveKey& other) const { return tie() < other.tie(); }
};

/// A time and how far it may be off, as a share of it.
struct MeasuredTime {
    double ns = 0;
    double error = 0;
};

struct CostCurve {
    CurveKey key;
    std::vector<SizedTime> samples;
    std::map<double, std::vector<double>> timesBySize;
    PiecewiseFit fit;
    std::vector<std::string> files;  // of nccl-tests
    std::string group;               // whose line that is: "data parallel 0-7"; empty: no line is told
    CostFit line;  // the one line of that group that findings and the chart rest on, where this choice carried most of
                   // its time

    /// The median at exactly this size when it was measured often enough, else the fit where it holds.
    std::optional<MeasuredTime> at(double bytes) const;

    static constexpr size_t kFewestAtOneSize = 3;
};

class CostEvidence {
  public:
    CostEvidence(const facts::TraceFacts& facts, const std::vector<NcclTestsTable>& tables);

    const CostCurve* find(const CurveKey& key) const;
    const std::map<CurveKey, CostCurve>& curves() const { return m_curves; }
    /// Algorithms and protocols that ran on this hardware.
    const SeenChoices& seen() const { return m_seen; }

  private:
    void add(const CurveKey& key, double bytes, double ns);
    std::map<CurveKey, CostCurve> m_curves;
    SeenChoices m_seen;
};

}  // namespace rankscope::costs
