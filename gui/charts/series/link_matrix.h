// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/store/reader.h"
#include "gui/charts/series/grid_chart.h"

namespace rankscope::gui {

/// Smaller transfers tell of start-up and not of the link.
inline constexpr int64_t kLeastLinkBytes = 1 << 20;

/// How fast each rank sent to each other, in bytes per ns: between hosts the network transfers of NCCL's proxies, bytes
/// by their time on the network (proxy_op.network_wait_ns); of pairs without any the messages, bytes by their transfer
/// time. Transfers of kLeastLinkBytes and more, those that work for another process (PXN) left out. Of ranks that share
/// a cell the slowest pair is shown. Pairs of which nothing tells are empty.
GridChart linkMatrix(store::TraceReader& reader);

}  // namespace rankscope::gui
