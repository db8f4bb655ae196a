// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace rankscope::collector {

/// Sorts rows by `less`, ties in their old order. Returns new position by old position; empty when the rows were sorted
/// already.
template <typename Row, typename Less>
std::vector<int64_t> sortRows(std::vector<Row>& rows, Less less) {
    if (std::is_sorted(rows.begin(), rows.end(), less)) return {};
    std::vector<uint32_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        if (less(rows[a], rows[b])) return true;
        if (less(rows[b], rows[a])) return false;
        return a < b;
    });
    std::vector<Row> sorted;
    sorted.reserve(rows.size());
    std::vector<int64_t> place(rows.size());
    for (const uint32_t old : order) {
        place[old] = static_cast<int64_t>(sorted.size());
        sorted.push_back(rows[old]);
    }
    rows.swap(sorted);
    return place;
}

}  // namespace rankscope::collector
