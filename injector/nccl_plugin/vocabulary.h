// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/capture_format/records.h"

namespace rankscope::injector {

/// The words of NCCL's profiler events ("AllReduce", "RING", "LL128", "ncclFloat32"); letter case is ignored. Unknown
/// words and null give unknown (255 for a data type).
capture::NcclOp opFromWord(const char* word) noexcept;
capture::Algorithm algorithmFromWord(const char* word) noexcept;
capture::Protocol protocolFromWord(const char* word) noexcept;
capture::DataType dataTypeFromWord(const char* word) noexcept;

}  // namespace rankscope::injector
