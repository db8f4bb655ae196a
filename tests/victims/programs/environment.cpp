// SPDX-License-Identifier: Apache-2.0
// Changes its environment, uses the GPU in between, and shows what it and its children see.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "gpu_calls.h"

extern char** environ;

namespace {

void list(const char* when) {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) std::printf("%s %s\n", when, *entry);
    std::fflush(stdout);
}

}  // namespace

int main() {
    list("start");
    setenv("VICTIM_NEW", "1", 1);
    setenv("VICTIM_OLD", "changed", 1);
    callGpu(5);
    static char own[] = "VICTIM_OWN=text";
    putenv(own);
    unsetenv("VICTIM_GONE");
    list("changed");
    std::printf("shell %d\n", std::system("echo $VICTIM_NEW $VICTIM_OLD $VICTIM_OWN [$VICTIM_GONE]"));
    std::fflush(stdout);
    clearenv();
    callGpu(5);
    list("cleared");
    setenv("ALONE", "1", 1);
    list("alone");
    execl("/usr/bin/env", "env", static_cast<char*>(nullptr));
}
