// SPDX-License-Identifier: Apache-2.0
// One step of every rank as a picture of few columns: what a report can show without the trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace rankscope::facts {
struct RankEvents;
struct TraceFacts;
}  // namespace rankscope::facts

namespace rankscope::report {

/// Letters of OverviewLane. Each column is one of them.
namespace overview {
inline constexpr char kOutside = ' ';  // not part of this rank's step
inline constexpr char kNothing = '.';  // device lane: idle; communication lane: none
inline constexpr char kCompute = 'c';
inline constexpr char kMemory = 'm';      // copies and sets that nothing else hides
inline constexpr char kOverlapped = 'o';  // communication under compute
inline constexpr char kTransfer = 't';    // exposed communication: moving data
inline constexpr char kWait = 'w';        // exposed communication: waiting for other ranks
}  // namespace overview

/// One rank's step; a letter a column.
struct OverviewLane {
    int rank = 0;
    std::string device;
    std::string communication;
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(OverviewLane& value, const Visit& visit) {
    auto& [rank, device, communication] = value;
    visit(rank, device, communication);
}

struct StepOverview {
    int step = 0;                     // its number
    int64_t startNs = 0;              // of the first rank's step
    int64_t endNs = 0;                // of the last rank's
    std::vector<OverviewLane> lanes;  // by rank

    static constexpr size_t kColumns = 800;
};

/// Draws the step of median length. take() may be called by several threads at once.
class StepOverviewPainter {
  public:
    explicit StepOverviewPainter(const facts::TraceFacts& facts);
    void take(const facts::RankEvents& events);
    /// Adds those that the painter of another process has drawn.
    void addLanes(std::vector<OverviewLane> lanes);
    /// Returns no lanes when the run has no step. Call it once, when every rank was taken.
    StepOverview finish() &&;

  private:
    const facts::TraceFacts& m_facts;
    std::mutex m_mutex;  // guards m_overview.lanes
    StepOverview m_overview;
};

}  // namespace rankscope::report
