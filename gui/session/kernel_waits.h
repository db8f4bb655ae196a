// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "collector/store/reader.h"

namespace rankscope::gui {

/// How long a communication kernel waits for other ranks, from its start on.
struct KernelWait {
    int64_t kernel = 0;  ///< row of trace.db
    int64_t waitNs = 0;
};

/// The waits of all ranks: tables of members lie by collective and not by rank, so that one walk serves all. Any
/// thread; the first that asks reads for all.
class KernelWaits {
  public:
    /// Of a rank's kernels, by row; those that do not wait or of which it is unknown are not among them. Of calls that
    /// share a kernel the longest wait counts, as in the analysis. Throws store::Error where the file is damaged.
    std::span<const KernelWait> of(store::TraceReader& reader, int32_t rank);

  private:
    void read(store::TraceReader& reader);

    std::mutex m_mutex;  // guards m_isRead; what is read does not change
    bool m_isRead = false;
    std::map<int32_t, std::vector<KernelWait>> m_waits;
};

}  // namespace rankscope::gui
