// SPDX-License-Identifier: Apache-2.0
// Tells the version of the cuBLAS that its linker found, and its libraries by that name.
#include <stdio.h>

int cublasGetVersion_v2(void* handle, int* version);

int main(void) {
    int version = 0;
    if (cublasGetVersion_v2(NULL, &version) != 0) return 1;
    printf("%d\n", version);
    return 0;
}
