// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/store/reader.h"
#include "gui/charts/series/scatter_chart.h"

namespace rankscope::gui {

/// The communication roofline, one point per rank, analysed step and level of links (inside a host, between hosts).
/// The model: throughput <= min(peak FLOP/s, FLOP per byte x bandwidth). A trace holds no FLOP, so both sides are
/// divided by the FLOP/s the GPU reached while it computed: across, compute time per byte the rank moved on the level's
/// bus; up, the share of the step in which the GPU computes. The ceiling is then 1, the slope the bandwidth, and the
/// ridge lies at 1 / bandwidth. Roofs: the link peaks where they are known, and the mean bus bandwidth of the recorded
/// collectives.
ScatterChart rooflineChart(store::TraceReader& reader);

}  // namespace rankscope::gui
