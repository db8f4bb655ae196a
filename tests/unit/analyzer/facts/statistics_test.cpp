// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/statistics.h"

#include <gtest/gtest.h>

namespace rankscope::facts {
namespace {

TEST(Statistics, MediansOfSortedValuesAreThoseOfAnyOrder) {
    std::vector<double> values;
    EXPECT_EQ(medianOfSorted(values), 0);
    for (const double next : {1., 2., 2., 5., 9., 9., 12.}) {
        values.push_back(next);
        EXPECT_EQ(medianOfSorted(values), median(values));
        for (size_t left = 0; left < values.size(); ++left) {
            std::vector<double> others = values;
            others.erase(others.begin() + static_cast<std::ptrdiff_t>(left));
            EXPECT_EQ(medianOfOthers(values, values[left]), median(others)) << left << " of " << values.size();
        }
    }
}

}  // namespace
}  // namespace rankscope::facts
