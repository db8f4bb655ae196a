// SPDX-License-Identifier: Apache-2.0
// Launches a kernel with <<<>>>. Built twice: with the shared runtime, and with the static one, as nvcc does by
// default.
#include <cstdio>

__global__ void addOne(int* values) {
    values[threadIdx.x] += 1;
}

int main() {
    int* values = nullptr;
    const int made = static_cast<int>(cudaMalloc(&values, 1024));
    for (int i = 0; i < 10; ++i) addOne<<<1, 32>>>(values);
    const int launched = static_cast<int>(cudaGetLastError());
    const int synchronized = static_cast<int>(cudaDeviceSynchronize());
    std::printf("malloc %d, launch %d, synchronize %d, free %d\n", made, launched, synchronized,
                static_cast<int>(cudaFree(values)));
}
