// SPDX-License-Identifier: Apache-2.0
// Plays any job on paper, call by call: all ranks compute the same, collectives block compute or run beside it.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/analyzer/trace_fixture.h"

namespace rankscope::test {

class Player {
  public:
    Player(int ranks, int ranksPerHost, const std::string& links = {});

    TraceFixture trace;

    /// The same kernel on every rank.
    void compute(double ns, const std::string& name = "gemm", int64_t grid = 64);
    /// The same, as long on each rank as `ns` says.
    void compute(const std::vector<double>& ns, const std::string& name = "gemm", int64_t grid = 64);
    /// A collective whose result compute waits for.
    void blocking(int communicator, store::Op op, double bytes, double transferNs);
    /// A collective beside compute, behind those before it.
    void beside(int communicator, store::Op op, double bytes, double transferNs);
    /// One collective on each of several disjoint groups at once.
    void blocking(const std::vector<int>& communicators, store::Op op, double bytes,
                  const std::vector<double>& transferNs);
    /// Compute waits for all communication.
    void meet();
    /// Ends the step; the first one is warm-up.
    void endStep();
    int communicator(std::vector<int> ranks);

    /// "RS301[5] RS203?[0 1]": findings with ranks; inconclusive ones carry a question mark.
    static std::string found(const report::Report& report);

  private:
    int64_t arrivalsEnd(int communicator, store::Op op, double bytes, double transferNs);

    int m_step = 0;
    std::vector<int64_t> m_compute, m_communication, m_starts;
    std::vector<std::vector<int>> m_members;
};

}  // namespace rankscope::test
