// SPDX-License-Identifier: Apache-2.0
// Plays of the job that the processes of a team share.
//
// What goes between them: each of the others tells the first the processor time that it has taken so far. The first
// sends one of them a diagnose::Play, which answers with a diagnose::Played and that time again, and gets the next when
// there is one. The first makes plays, too, by a thread of its own.
#pragma once

#include <memory>
#include <vector>

#include "analyzer/diagnose/plays.h"
#include "collector/team/team.h"

namespace rankscope::report {

/// In the first process; `taking`: it and those in helpPlay(), by number. All must outlive it.
std::unique_ptr<diagnose::Players> sharedPlayers(const job::Analysis& analysis, team::Team& team,
                                                 const std::vector<int>& taking);

/// In the others, until they are dismissed: throws team::Dismissed.
[[noreturn]] void helpPlay(const job::Analysis& analysis, team::Team& team);

}  // namespace rankscope::report
