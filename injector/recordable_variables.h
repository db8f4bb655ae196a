// SPDX-License-Identifier: Apache-2.0
// What of the environment may be recorded.
#pragma once

#include <cstdint>

#include "injector/text.h"

namespace rankscope::injector {

/// Says whether the value of a variable may be recorded: its name is one of kRecordableNames.
bool isRecordableVariable(const char* name, uint64_t length) noexcept;

using RecordedValue = FixedText<8192>;  // what is longer is cut

/// Returns a value without the user and password of any URL in it: "https://***@host/".
RecordedValue recordedValue(const char* value) noexcept;

}  // namespace rankscope::injector
