// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/plays.h"

#include <algorithm>

#include "analyzer/edits/graph_changes.h"
#include "analyzer/edits/what_if.h"

namespace rankscope::diagnose {
namespace {

Played playInstantTransfers(const job::Analysis& analysis) {
    replay::TaskGraph instant = analysis.replay.graph;
    edits::changeTransfers(instant, [](const edits::TransferTask&, const replay::Exchange&, int64_t) { return 0; });
    Played played;
    played.stepsNs = analysis.replay.stepsNs(instant, replay::simulate(instant));
    return played;
}

}  // namespace

Played play(const job::Analysis& analysis, const Play& what) {
    if (what.instant) return playInstantTransfers(analysis);
    Played played;
    try {
        edits::ChangedJob job = edits::unchangedJob(analysis);
        job.effect.outlook = what.outlook;
        for (const job::Change& change : what.changes) edits::change(job, *edits::makeEdit(change), analysis);
        played.stepsNs = std::move(job.stepsNs);
        played.open = job.effect.open;
        played.hostMaySlow = job.effect.hostMaySlow;
        played.chanceNs = job.effect.chanceNs;
    } catch (const edits::EditError& error) {
        played.impossible = error.what();
    }
    return played;
}

Plays::Plays(const job::Analysis& analysis)
    : Plays(
          [&analysis](const std::vector<Play>& plays) {
              std::vector<Played> all;
              for (const Play& what : plays) all.push_back(play(analysis, what));
              return all;
          },
          1) {}

Plays::Plays(Together together, size_t atOnce) : m_together(std::move(together)), m_atOnce(atOnce) {}

const Played* Plays::find(const Play& what) const {
    for (const auto& [asked, played] : m_made)
        if (asked == what) return played.get();
    return nullptr;
}

const Played& Plays::of(const Play& what) {
    if (const Played* made = find(what)) return *made;
    std::vector<Play> now{what};
    for (const Play& other : m_expected)
        if (now.size() < m_atOnce && find(other) == nullptr && std::ranges::find(now, other) == now.end())
            now.push_back(other);
    std::vector<Played> played = m_together(now);
    for (size_t i = 0; i < now.size(); ++i)
        m_made.emplace_back(std::move(now[i]), std::make_unique<Played>(std::move(played[i])));
    return *find(what);
}

}  // namespace rankscope::diagnose
