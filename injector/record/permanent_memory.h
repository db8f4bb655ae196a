// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace rankscope::injector {

/// Memory for what lives as long as the process, straight from the kernel: the job's malloc may be the very thing that
/// called us. Null: there is none. Thread-safe, 16-byte aligned.
void* takePermanent(size_t bytes) noexcept;

/// In a forked child.
void renewPermanentMemoryLock() noexcept;

}  // namespace rankscope::injector
