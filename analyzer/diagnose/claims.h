// SPDX-License-Identifier: Apache-2.0
// Time that a diagnosis has taken for itself, so that a shallower one does not count it again. Detectors run deepest
// cause first (table.cpp). Two ledgers: waiting, by (rank, step), and communication, by communicator. All amounts
// are ns.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/job/analysis.h"

namespace rankscope::diagnose {

class Claims {
  public:
    /// `id` says that `culprits` lengthen step analysis.steps[i] by costPerStepNs[i]: every other rank of `victims`
    /// (empty: of the job) stands still for it somewhere, in a collective, a receive or idle. Each takes at most what
    /// it really waits and nobody has claimed.
    void takeWaiting(const job::Analysis& analysis, const std::string& id, const std::vector<int>& culprits,
                     const std::vector<double>& costPerStepNs, const std::vector<int>& victims = {});
    /// The same for one rank and step: waiting or idleness of its own. Amounts add up over the diagnoses.
    void take(const std::string& id, int rank, int step, double ns);

    /// How much of the rank's exposed waiting and idleness in that step deeper causes have explained.
    double explainedNs(int rank, int step) const;
    /// Median of that over the analysed steps.
    double explainedNs(const job::Analysis& analysis, int rank) const;
    /// The same by diagnosis, ns.
    std::map<std::string, double> explanations(int rank, int step) const;
    /// The part of it that one diagnosis took.
    double explainedBy(const std::string& id, int rank, int step) const;
    /// Ranks a diagnosis named as the place of the fault.
    const std::set<int>& culprits(const std::string& id) const;

    /// `id` explains this much of the communicator's exposed transfer, per step.
    void takeTransfer(const std::string& id, int64_t communicator, double nsPerStep);
    /// What the others (all but `asking`) have explained of it.
    double explainedTransferNs(int64_t communicator, const std::string& asking = {}) const;
    /// All of it by diagnosis, ns per step.
    std::map<std::string, double> transferExplanations(int64_t communicator) const;

  private:
    std::map<std::pair<int, int>, std::map<std::string, double>> m_waiting;  // (rank, step): by diagnosis
    std::map<int64_t, std::map<std::string, double>> m_transfer;
    std::map<std::string, std::set<int>> m_culprits;
};

/// Exposed waiting (in collectives, sends and receives), transfers exposed for it, and idleness of a rank in a step:
/// what a late peer, or its own host, may cause.
double standstillNs(const job::Analysis& analysis, int rank, int step);

}  // namespace rankscope::diagnose
