// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/jitter_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace rankscope::reference {

namespace {

constexpr int kWarmUpSteps = 2;
// Early in the step: later the host is so far ahead of the device that a pause of its own costs nothing.
constexpr int kEarlyLaunches = 6;

uint64_t hash(uint64_t seed, uint64_t value) {  // splitmix64
    uint64_t mixed = seed * 0x9e3779b97f4a7c15ull + value + 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    return mixed ^ (mixed >> 31);
}

}  // namespace

JitterPlan::JitterPlan(const Scenario& scenario) {
    const auto& jitter = scenario.faults.jitter;
    if (!jitter) return;
    const auto seed = static_cast<uint64_t>(scenario.seed);
    std::vector<int> steps(static_cast<size_t>(scenario.steps));
    std::iota(steps.begin(), steps.end(), 0);
    if (scenario.steps > kWarmUpSteps) steps.erase(steps.begin(), steps.begin() + kWarmUpSteps);
    std::stable_sort(steps.begin(), steps.end(),
                     [&](int a, int b) { return hash(seed, static_cast<uint64_t>(a)) < hash(seed, static_cast<uint64_t>(b)); });
    const auto hit = static_cast<size_t>(std::max(1.0, std::round(jitter->share * scenario.steps)));
    steps.resize(std::min(hit, steps.size()));
    std::sort(steps.begin(), steps.end());
    m_ranks.assign(static_cast<size_t>(scenario.steps), -1);
    m_launches.assign(static_cast<size_t>(scenario.steps), 0);
    const int ranks = scenario.worldSize();
    int before = -1;
    for (const int step : steps) {
        const uint64_t drawn = hash(~seed, static_cast<uint64_t>(step));
        int rank = static_cast<int>(drawn % static_cast<uint64_t>(ranks));
        if (rank == before) rank = (rank + 1) % ranks;
        m_ranks[static_cast<size_t>(step)] = before = rank;
        m_launches[static_cast<size_t>(step)] = 1 + static_cast<int>((drawn >> 32) % kEarlyLaunches);
    }
}

}  // namespace rankscope::reference
