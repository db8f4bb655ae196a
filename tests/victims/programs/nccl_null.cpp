// SPDX-License-Identifier: Apache-2.0
// Calls NCCL without a communicator: it refuses, but says in NVTX what it was asked for.
#include <nccl.h>

#include <cstdio>

int main() {
    for (int i = 0; i < 20; ++i)
        std::printf("all-reduce %d\n",
                    static_cast<int>(ncclAllReduce(nullptr, nullptr, 1024, ncclFloat, ncclSum, nullptr, nullptr)));
    std::printf("all-gather %d\n",
                static_cast<int>(ncclAllGather(nullptr, nullptr, 512, ncclDouble, nullptr, nullptr)));
}
