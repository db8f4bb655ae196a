// SPDX-License-Identifier: Apache-2.0
// Plays of the job that the processes of a team share.
//
// What goes between them: each of the others tells the first the processor time that it has taken so far. The first
// sends one of them a Play, which answers with a Played and that time again, and gets the next when there is one; an
// empty message says that there will be none. The first makes plays, too, by a thread of its own.
#pragma once

#include <memory>
#include <vector>

#include "analyzer/diagnose/plays.h"
#include "collector/team/team.h"

namespace rankscope::diagnose {

/// In the first process; `taking`: it and those in helpPlay(), by number. All must outlive it.
std::unique_ptr<Players> sharedPlayers(const job::Analysis& analysis, team::Team& team, const std::vector<int>& taking);

/// By `taking`, as job::LoadOptions::holders tells them; where that is this process alone, by `workers` threads of it
/// (0: its share of the cores).
Plays playsBy(const job::Analysis& analysis, team::Team* team, const std::vector<int>& taking, unsigned workers);

/// In the first process, which has finished its Plays.
void endSharedPlays(team::Team& team, const std::vector<int>& taking);

/// In the others, until there are no more plays, or they are dismissed: then it throws team::Dismissed.
void helpPlay(const job::Analysis& analysis, team::Team& team);

}  // namespace rankscope::diagnose
