// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/jitter_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "reference/workloads/seeded_hash.h"

namespace rankscope::reference {

namespace {

constexpr int kWarmUpSteps = 2;
// Early in the step: later the host is so far ahead of the device that a pause of its own costs nothing.
constexpr int kEarlyLaunches = 6;

}  // namespace

JitterPlan::JitterPlan(const Scenario& scenario) {
    const auto& jitter = scenario.faults.jitter;
    if (!jitter) return;
    const auto seed = static_cast<uint64_t>(scenario.seed);
    std::vector<int> steps(static_cast<size_t>(scenario.steps));
    std::iota(steps.begin(), steps.end(), 0);
    if (scenario.steps > kWarmUpSteps) steps.erase(steps.begin(), steps.begin() + kWarmUpSteps);
    std::stable_sort(steps.begin(), steps.end(), [&](int a, int b) {
        return seededHash(seed, static_cast<uint64_t>(a)) < seededHash(seed, static_cast<uint64_t>(b));
    });
    const auto hit = static_cast<size_t>(std::max(1.0, std::round(jitter->share * scenario.steps)));
    steps.resize(std::min(hit, steps.size()));
    std::sort(steps.begin(), steps.end());
    m_ranks.assign(static_cast<size_t>(scenario.steps), -1);
    m_launches.assign(static_cast<size_t>(scenario.steps), 0);
    const int ranks = scenario.worldSize();
    int before = -1;
    for (const int step : steps) {
        const uint64_t drawn = seededHash(~seed, static_cast<uint64_t>(step));
        int rank = static_cast<int>(drawn % static_cast<uint64_t>(ranks));
        if (rank == before) rank = (rank + 1) % ranks;
        m_ranks[static_cast<size_t>(step)] = before = rank;
        m_launches[static_cast<size_t>(step)] = 1 + static_cast<int>((drawn >> 32) % kEarlyLaunches);
    }
}

}  // namespace rankscope::reference
