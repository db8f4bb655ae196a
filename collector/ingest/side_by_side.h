// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace rankscope::collector {

/// Calls work(0), work(1)… below `count`, each once, by `threads` threads (0: one per core), this one among them. The
/// first exception ends it, and is thrown here.
void sideBySide(size_t count, unsigned threads, const std::function<void(size_t)>& work);

}  // namespace rankscope::collector
