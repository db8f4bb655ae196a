// SPDX-License-Identifier: Apache-2.0
// An NCCL that does nothing.
#include <cstddef>
extern "C" int ncclAllReduce(const void*, void*, size_t count, int, int, void*, void*) {
    return count == 0 ? 1 : 0;
}
