// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "gui/session/rows_by_rank.h"

namespace rankscope::gui {

/// How long a communication kernel waits for other ranks, from its start on.
struct KernelWait {
    int64_t kernel = 0;  ///< row of trace.db
    int64_t waitNs = 0;
};

/// By row; kernels that do not wait or of which it is unknown are not among them. Of calls that share a kernel the
/// longest wait counts, as in the analysis.
RowsByRank<KernelWait>::Ranks readKernelWaits(store::TraceReader& reader);

}  // namespace rankscope::gui
