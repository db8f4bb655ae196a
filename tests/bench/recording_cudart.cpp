// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime that does nothing.
extern "C" int cudaStreamSynchronize(void* stream) {
    return stream == nullptr ? 0 : 1;
}
