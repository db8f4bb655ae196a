// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "collector/store/reader.h"

namespace rankscope::gui {

/// Rows of all ranks from tables that are not sorted by rank, so that one walk over them serves all. Any thread; the
/// first that asks reads for all.
template <typename Row>
class RowsByRank {
  public:
    using Ranks = std::map<int32_t, std::vector<Row>>;
    using Read = Ranks (*)(store::TraceReader&);

    explicit RowsByRank(Read read) : m_read(read) {}

    /// A rank's rows, in the order in which `read` leaves them. Throws store::Error where the file is damaged.
    std::span<const Row> of(store::TraceReader& reader, int32_t rank) {
        const std::lock_guard lock(m_mutex);
        if (!m_isRead) m_rows = m_read(reader);
        m_isRead = true;
        const auto found = m_rows.find(rank);
        return found == m_rows.end() ? std::span<const Row>() : found->second;
    }

  private:
    Read m_read;
    std::mutex m_mutex;  // guards m_isRead; what is read does not change
    bool m_isRead = false;
    Ranks m_rows;
};

}  // namespace rankscope::gui
