// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::capture {

/// CRC-32C (Castagnoli), as iSCSI and ext4 use it. Pass an earlier result as `crc` to go on with more bytes.
uint32_t crc32c(const void* data, size_t bytes, uint32_t crc = 0) noexcept;

}  // namespace rankscope::capture
