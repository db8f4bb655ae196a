// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/job_death.h"

#include <algorithm>
#include <array>

namespace rankscope::facts {

std::string jobDeath(const std::vector<store::Loss>& losses) {
    // The first that there is says most: of several deaths the one to look at.
    constexpr std::array<const char*, 3> kKinds = {"first_death", "died", "failed_exit"};
    for (const char* kind : kKinds) {
        const auto loss = std::ranges::find(losses, kind, &store::Loss::kind);
        if (loss != losses.end()) return "The job died: " + loss->message + ".";
    }
    return {};
}

}  // namespace rankscope::facts
