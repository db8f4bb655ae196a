// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/ingest/raw_capture.h"

namespace rankscope::collector {

/// Keeps one device's part of a process that drives several ranks: its device activity and its communicators' calls.
/// Host events stay, because every rank of the process waits for them. Losses and sources stay as well.
void keepDevice(const RawCapture& raw, int32_t device, RankRecording& recording);

}  // namespace rankscope::collector
