// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/store/reader.h"
#include "gui/charts/series/scatter_chart.h"

namespace rankscope::gui {

/// Message size against bus bandwidth (nccl-tests' definitions) of collectives and sends whose transfer time is known.
/// A series is an operation on groups of one size and spread over hosts; it has its alpha-beta line, where the sizes
/// allow one, and its ceiling, where the link peaks are known.
ScatterChart bandwidthChart(store::TraceReader& reader);

}  // namespace rankscope::gui
