// SPDX-License-Identifier: Apache-2.0
// Plays of the job that the processes of a team share, each of which has the whole analysis.
//
// What goes between them: the first process tells all a list of diagnose::Play; of it process number p of those who
// take part makes each so many-th, from the p-th on, and sends a list of diagnose::Played.
#pragma once

#include <vector>

#include "analyzer/diagnose/plays.h"
#include "collector/team/team.h"

namespace rankscope::report {

/// In the first process; `taking`: it and those in helpPlay(), by number. All must outlive it.
diagnose::Plays sharedPlays(const job::Analysis& analysis, team::Team& team, const std::vector<int>& taking);

/// In the others, until they are dismissed: throws team::Dismissed.
[[noreturn]] void helpPlay(const job::Analysis& analysis, team::Team& team, const std::vector<int>& taking);

}  // namespace rankscope::report
