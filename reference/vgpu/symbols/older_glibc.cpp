// SPDX-License-Identifier: Apache-2.0
// The virtual GPUs hold libstdc++, and GCC 12's takes arc4random (for std::random_device) from glibc 2.36 where it is
// built there. With this one in its place they load where glibc is 2.35, as on Ubuntu 22.04.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() noexcept {
    uint32_t value = 0;
    if (getentropy(&value, sizeof value) != 0) std::abort();  // the kernel is older than 3.17
    return value;
}
