// SPDX-License-Identifier: Apache-2.0
// exec HOW BEFORE AFTER: calls the GPU, fails to become another program, calls it once more, then becomes itself anew
// by the function HOW and calls it again under the same process id.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gpu_calls.h"

namespace {

void become(const std::string& how, const char* path, const char* after) {
    char name[] = "exec";
    char* const arguments[] = {name, const_cast<char*>(after), nullptr};
    if (how == "execl") execl(path, name, after, static_cast<char*>(nullptr));
    if (how == "execle") execle(path, name, after, static_cast<char*>(nullptr), environ);
    if (how == "execlp") execlp(path, name, after, static_cast<char*>(nullptr));
    if (how == "execv") execv(path, arguments);
    if (how == "execve") execve(path, arguments, environ);
    if (how == "execvp") execvp(path, arguments);
    if (how == "execvpe") execvpe(path, arguments, environ);
    if (how == "fexecve") fexecve(open(path, O_RDONLY | O_CLOEXEC), arguments, environ);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2) {
        callGpu(std::atoi(argv[1]));
        std::printf("%s: second image with %s calls\n", argv[0], argv[1]);
        return 9;
    }
    callGpu(std::atoi(argv[2]));
    become(argv[1], "/nonexistent/program", argv[3]);
    std::printf("%s failed: %d\n", argv[1], errno);
    callGpu(1);
    std::fflush(stdout);
    if (std::atoi(argv[3]) == 0) raise(9);
    become(argv[1], "/proc/self/exe", argv[3]);
    return 1;
}
