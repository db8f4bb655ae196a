// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gui/session/run_info.h"

namespace rankscope::gui {

/// One of two runs that are looked at side by side.
enum class Side : uint8_t { a, b };
inline Side other(Side side) noexcept {
    return side == Side::a ? Side::b : Side::a;
}

/// Lays two runs beside each other by their steps: the first common step in view begins at the same place in both, at
/// the same scale, so that lengths can be compared by eye.
class StepAlignment {
  public:
    /// Where a step that both runs have begins in each, on its first rank. Without common steps the runs' beginnings
    /// are the only anchor, of step -1.
    struct Anchor {
        int32_t step = -1;
        int64_t aNs = 0, bNs = 0;

        int64_t of(Side side) const noexcept { return side == Side::a ? aNs : bNs; }
    };

    StepAlignment(const RunInfo& a, const RunInfo& b);

    /// The first that begins in `visible` of that side; where none does, the one before, or the first.
    const Anchor& anchorFor(Side side, TimeRange visible) const noexcept;
    /// What the other side shows while `from` shows `visible`.
    TimeRange across(Side from, TimeRange visible) const noexcept;
    /// The time of the other side that corresponds to `range`: each end after the same share of the same step, however
    /// long the steps take. Cut to the run.
    TimeRange matching(Side from, TimeRange range) const noexcept;
    /// Everything that has to be within reach of `side`: its own run, and where the other's lies at any anchor.
    TimeRange room(Side side) const noexcept;
    /// What `side` shows so that both runs are seen whole.
    TimeRange fit(Side side) const noexcept;
    void setWhole(Side side, TimeRange whole) noexcept { (side == Side::a ? m_wholeA : m_wholeB) = whole; }

  private:
    int64_t matching(Side from, int64_t ns) const noexcept;
    TimeRange whole(Side side) const noexcept { return side == Side::a ? m_wholeA : m_wholeB; }

    TimeRange m_wholeA, m_wholeB;
    std::vector<Anchor> m_anchors;  // ascending, never empty
};

}  // namespace rankscope::gui
