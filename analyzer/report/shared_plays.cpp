// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/shared_plays.h"

#include <algorithm>

#include "collector/team/packing.h"

namespace rankscope::report {
namespace {

std::vector<diagnose::Played> playShare(const job::Analysis& analysis, const std::vector<diagnose::Play>& plays,
                                        size_t part, size_t parts) {
    std::vector<diagnose::Played> played;
    for (size_t i = part; i < plays.size(); i += parts) played.push_back(diagnose::play(analysis, plays[i]));
    return played;
}

}  // namespace

diagnose::Plays sharedPlays(const job::Analysis& analysis, team::Team& team, const std::vector<int>& taking) {
    const auto together = [&analysis, &team, &taking](const std::vector<diagnose::Play>& plays) {
        team.sendToAll(team::Packer()(plays).take());
        std::vector<diagnose::Played> all(plays.size());
        for (size_t part = 0; part < taking.size(); ++part) {
            std::vector<diagnose::Played> share;
            if (part == 0) {
                share = playShare(analysis, plays, 0, taking.size());
            } else {
                const std::string message = team.receiveFrom(taking[part]);
                team::Unpacker(message, team.nameOf(taking[part]))(share);
            }
            for (size_t i = part, made = 0; i < plays.size() && made < share.size(); i += taking.size())
                all[i] = std::move(share[made++]);
        }
        return all;
    };
    return {together, taking.size()};
}

void helpPlay(const job::Analysis& analysis, team::Team& team, const std::vector<int>& taking) {
    const auto part = static_cast<size_t>(std::ranges::find(taking, team.self()) - taking.begin());
    for (;;) {
        const std::string message = team.await();
        const auto plays = team::Unpacker(message, team.nameOf(0)).get<std::vector<diagnose::Play>>();
        team.send(team::Packer()(playShare(analysis, plays, part, taking.size())).take());
    }
}

}  // namespace rankscope::report
