// SPDX-License-Identifier: Apache-2.0
// How causes say what grew. Causes of a faster step are found with the sides changed over (causes.h), but what they
// show as evidence stays in the order base, new.
#pragma once

#include <string>

namespace rankscope::compare {

/// "+12.0 %"; from twice as much on "6.5 times as long". `growth` is a share.
std::string timeGrowthText(double growth);

/// "takes ...": "12.0 % longer", "6.5 times as long".
std::string longerText(double growth);

/// "+12.0 % of work", "6.5 times the work".
std::string amountGrowthText(double growth, const std::string& what);

/// "2.00 ms -> 3.00 ms": of the fast side and the slow one. `reversed`: the base is the slow one.
std::string fromTo(const std::string& fast, const std::string& slow, bool reversed);

/// A share that grows by `growth` from the fast side to the slow one, seen from the base.
double fromBase(double growth, bool reversed);

}  // namespace rankscope::compare
