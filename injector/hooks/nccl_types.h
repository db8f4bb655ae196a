// SPDX-License-Identifier: Apache-2.0
// The few types of nccl.h that cross a hook, in our own words: layouts that have not changed from NCCL 2.18 to 2.32.
#pragma once

#include <cstddef>

namespace rankscope::injector {

using NcclComm = void*;
using NcclStream = void*;
struct NcclUniqueId {
    char internal[128];
};
using NcclConfig = void;      ///< only passed on
using NcclCollConfig = void;  ///< the same

constexpr int kNcclSuccess = 0;
constexpr int kNcclSystemError = 2;  ///< what we return when the real function cannot be found
constexpr int kNcclSplitNoColor = -1;

}  // namespace rankscope::injector
