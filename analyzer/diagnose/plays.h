// SPDX-License-Identifier: Apache-2.0
// The job played with changes, for the prices of findings. What a play gives depends on nothing but the analysis and
// what is asked, so that plays may be made ahead, and by others.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/edits/edit.h"
#include "analyzer/job/analysis.h"

namespace rankscope::diagnose {

struct Play {
    std::vector<job::Change> changes{};                 // of the recorded job, one after the other
    edits::Outlook outlook = edits::Outlook::expected;  // that all of them are taken with
    bool instant = false;                               // instead of changes: every transfer takes no time
    bool operator==(const Play&) const = default;
};

struct Played {
    std::string impossible;                  // why a change cannot be made; empty: they all can
    std::vector<double> stepsNs;             // of the analysed steps, at equal tokens
    bool open = false, hostMaySlow = false;  // of edits::EditEffect
    double chanceNs = 0;                     // the same
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(Play& value, const Visit& visit) {
    auto& [changes, outlook, instant] = value;
    visit(changes, outlook, instant);
}
template <typename Visit>
void forEachField(Played& value, const Visit& visit) {
    auto& [impossible, stepsNs, open, hostMaySlow, chanceNs] = value;
    visit(impossible, stepsNs, open, hostMaySlow, chanceNs);
}

/// The job's graph is in memory up to two times more meanwhile. `analysis` has a replay.
Played play(const job::Analysis& analysis, const Play& what);

/// Each play is made once. Used by one thread.
class Plays {
  public:
    /// Makes several at a time; by what was asked, in its order.
    using Together = std::function<std::vector<Played>(const std::vector<Play>&)>;

    /// One after the other. `analysis` must outlive this.
    explicit Plays(const job::Analysis& analysis);
    Plays(Together together, size_t atOnce);

    /// These may be asked for next, the likeliest first: made beside what is asked for, as far as there are hands.
    /// Replaces what was expected before.
    void expect(std::vector<Play> plays) { m_expected = std::move(plays); }
    /// True where nothing is made ahead, and expect() is of no use.
    bool oneByOne() const { return m_atOnce < 2; }
    const Played& of(const Play& what);

  private:
    const Played* find(const Play& what) const;

    Together m_together;
    size_t m_atOnce;
    std::vector<Play> m_expected;
    std::vector<std::pair<Play, std::unique_ptr<Played>>> m_made;  // a few dozen
};

}  // namespace rankscope::diagnose
