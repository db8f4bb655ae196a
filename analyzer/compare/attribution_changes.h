// SPDX-License-Identifier: Apache-2.0
// Where the step's change is, in rows that add up to it.
#pragma once

#include <string_view>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// What placeText() says of no role in particular.
inline constexpr std::string_view kAllRanks = "all ranks";

/// "on the critical path", or where a side has none "of the rank that waits least": what the rows are differences of.
std::string_view attributionScope(const std::vector<AttributionRow>& rows);

/// Differences of the two critical paths by what they are in (waiting is no part of a critical path: the time is where
/// the one is that is waited for). Where a side could not be replayed, differences of the categories of the rank that
/// waits least on the new side. Both are of mean steps: what `changeNs`, of typical ones, differs by from the change of
/// the means is a row of category `rest`, and so is what nothing explains. Largest first.
std::vector<AttributionRow> attributeChange(const SideMeans& base, const SideMeans& now, double changeNs);

/// Ranks whose own time grew by far more than that of the middle one; all of them (empty) where none stands out.
std::vector<std::string> rolesThatGrew(const SideMeans& base, const SideMeans& now, double RoleSummary::*part,
                                       bool shrank = false);

/// "rank 3 (dp 3)", "ranks 4-7 (stage 1)"; empty roles: "all ranks". Fills `ranks` with their numbers on that side.
std::string placeText(const SideMeans& side, const std::vector<std::string>& roles, std::vector<int>& ranks);

}  // namespace rankscope::compare
