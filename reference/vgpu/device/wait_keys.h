// SPDX-License-Identifier: Apache-2.0
// What threads wait under that wait for something outside of their process (HostThread::waitKeys).
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace rankscope::vgpu {

/// Set in the keys of counters (eventfd) alone, and in those of processes' ends.
inline constexpr uint64_t kCounterBit = 1, kEndBit = 2;

inline uint64_t mixKeys(uint64_t a, uint64_t b) {
    return (a * 0x9E3779B97F4A7C15ull ^ b) * 0xBF58476D1CE4E5B9ull & ~(kCounterBit | kEndBit);
}

/// Of a pipe or a socket; the end that is read and the one that is written of a pipe have the same.
inline uint64_t inodeKey(const struct stat& status) {
    return mixKeys(status.st_dev, status.st_ino);
}

/// Of the end of the child `pid`, and of the end of any child of `parent`.
inline uint64_t childKey(int32_t pid) {
    return mixKeys(~uint64_t{0}, static_cast<uint32_t>(pid)) | kEndBit;
}
inline uint64_t anyChildKey(int32_t parent) {
    return mixKeys(~uint64_t{1}, static_cast<uint32_t>(parent)) | kEndBit;
}

}  // namespace rankscope::vgpu
