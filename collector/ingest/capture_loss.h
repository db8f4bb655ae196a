// SPDX-License-Identifier: Apache-2.0
// Losses and states of sources, as the tables say them.
#pragma once

#include <string>

#include "collector/store/event_model.h"
#include "injector/capture_format/reader_loss.h"
#include "injector/capture_format/records.h"

namespace rankscope::collector {

/// What the injector told about itself. `fileOffset` is where it told it.
store::Loss lossOf(const capture::LossRecord& record, uint64_t fileOffset);
/// What the reader of the file could not read.
store::Loss lossOf(const capture::ReaderLoss& loss);

store::SourceStatus sourceStatusOf(const capture::StatusRecord& record, const std::string& message);

}  // namespace rankscope::collector
