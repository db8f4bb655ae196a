// SPDX-License-Identifier: Apache-2.0
// descriptors HOW FILE: the program thinks that all descriptors above 2 are its own. Its file must hold its bytes
// alone.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "gpu_calls.h"

namespace {

void report(int descriptor) {
    char text[256] = {};
    const ssize_t length = pread(descriptor, text, sizeof text - 1, 0);
    std::printf("%zd bytes: %s\n", length, text);
}

}  // namespace

int main(int, char** argv) {
    const bool closes = std::strcmp(argv[1], "close") == 0;
    callGpu(10);
    if (closes)
        for (int i = 3; i < 4096; ++i) close(i);
    const int own = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    [[maybe_unused]] const ssize_t written = write(own, "mine\n", 5);
    for (int i = 3; i < 512; ++i)
        if (closes ? i != own : (fcntl(i, F_GETFD) == -1 || i < 16)) dup2(own, i);
    // Enough to make every buffer of a recording go to its file.
    callGpu(60000);
    report(own == 3 || !closes ? open(argv[2], O_RDONLY) : own);
}
