// SPDX-License-Identifier: Apache-2.0
// Trials of changed jobs that the processes of a team share.
//
// What goes between them: the first sends one of the others a Trial, which answers whether it can be made, and if so
// with a PlayedTrial, and gets the next when there is one.
#pragma once

#include <vector>

#include "analyzer/recommend/job_player.h"
#include "collector/team/team.h"

namespace rankscope::recommend {

/// In the first process: the others of `taking`, by number, are in helpWithTrials().
class TeamTrials : public TrialHelpers {
  public:
    TeamTrials(team::Team& team, const std::vector<int>& taking);
    /// Throws team::MemberFailed.
    void share(const std::function<std::optional<size_t>()>& next, const std::function<Trial(size_t number)>& trialOf,
               const std::function<void(size_t number, std::optional<PlayedTrial>)>& take) override;

  private:
    struct Hand {
        int process = 0;
        std::optional<size_t> number;  // of the trial that it is at
    };
    team::Team& m_team;
    std::vector<Hand> m_hands;
};

/// In the others, until they are dismissed: throws team::Dismissed.
[[noreturn]] void helpWithTrials(const job::Analysis& analysis, team::Team& team);

}  // namespace rankscope::recommend
