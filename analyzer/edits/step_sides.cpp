// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/step_sides.h"

#include <algorithm>
#include <cmath>

#include "analyzer/facts/statistics.h"

namespace rankscope::edits {
namespace {

void widen(facts::Estimate& gain, const std::vector<double>& before, const std::vector<double>& after) {
    const facts::Estimate typical = typicalSaving(before, after);
    double mean = 0;
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) mean += before[i] - after[i];
    mean /= static_cast<double>(std::max<size_t>(1, std::min(before.size(), after.size())));
    gain.low = std::min({gain.low, typical.low, mean});
    gain.high = std::max({gain.high, typical.high, mean});
}

}  // namespace

StepSides sidesOf(std::vector<double> stepsNs) {
    StepSides sides;
    sides.pessimistic = sides.optimistic = stepsNs;
    sides.expected = std::move(stepsNs);
    return sides;
}

void addOutlooks(const std::vector<double>& unchanged, const EditEffect& effect,
                 const std::function<std::vector<double>(Outlook)>& stepsWith, StepSides& sides,
                 const std::function<bool(const StepSides&)>& enough) {
    for (Outlook outlook : kOutlooks) {
        try {
            sides.outlooks[outlook] = stepsWith(outlook);
        } catch (const EditError&) {
            sides.outlooks.erase(outlook);
            sides.unplayable = true;
        }
        if (enough && enough(sides)) return;
    }
    sides.chanceNs = chanceNs(unchanged, effect);
}

void addSlowHost(const std::function<std::vector<double>(Outlook)>& stepsWith, StepSides& sides) {
    try {
        sides.pessimistic = stepsWith(Outlook::dear);
    } catch (const EditError&) {
        sides.unplayable = true;
    }
}

SideGain gainOf(const StepSides& before, const StepSides& after) {
    SideGain gain{typicalSaving(before.expected, after.expected), false};
    facts::Estimate& saving = gain.savingNs;
    widen(saving, before.expected, after.expected);
    widen(saving, before.pessimistic, after.pessimistic);
    widen(saving, before.optimistic, after.optimistic);
    for (const auto& [outlook, steps] : after.outlooks) {
        const auto same = before.outlooks.find(outlook);
        const std::vector<double>& from = same == before.outlooks.end() ? before.expected : same->second;
        if (steps == from)
            gain.mayDoNothing = true;
        else
            widen(saving, from, steps);
    }
    const double chance = std::sqrt(
        std::max(0.0, after.chanceNs * after.chanceNs - before.chanceNs * before.chanceNs));  // of what is new
    saving = saving.widened(chance);
    if (gain.mayDoNothing || after.unplayable) {
        saving.low = std::min(saving.low, 0.0);
        saving.high = std::max(saving.high, 0.0);
    }
    gain.mayDoNothing = gain.mayDoNothing && !after.unplayable;
    return gain;
}

bool gainedByRareSteps(const std::vector<double>& before, const std::vector<double>& after) {
    std::vector<double> differences;
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) differences.push_back(before[i] - after[i]);
    return facts::median(std::move(differences)) < kRecurringGain * saving(before, after).expected;
}

facts::Estimate typicalSaving(const std::vector<double>& before, const std::vector<double>& after) {
    if (gainedByRareSteps(before, after)) return meanSaving(before, after);
    const facts::Estimate result = saving(before, after);
    const double shift = facts::median(before) - facts::median(after) - result.expected;
    return result + facts::Estimate::around(shift, 0);
}

}  // namespace rankscope::edits
