// SPDX-License-Identifier: Apache-2.0
// Processes that a thread with a clock forks off are part of the job from their first instant, at that thread's clock;
// they leave it when they end or become another program.
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include <vector>

#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/threads/real_calls.h"
#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {
namespace {

RealCall<pid_t (*)()> realFork("fork");
RealCall<void (*)(int)> realExit("_exit");
RealCall<int (*)(const char*, char*const*, char*const*)> realExecve("execve"), realExecvpe("execvpe");
RealCall<int (*)(int, char* const*, char* const*)> realFexecve("fexecve");

/// Not in a child of vfork(), which runs in its parent's memory, nor in a handler that came in the middle of a call.
LocalProcess* processThatMayLeave() {
    if (isInsideCall() || SharedLock::isHeldHere()) return nullptr;
    LocalProcess* process = LocalProcess::ifAny();
    return process && process->pid() == getpid() ? process : nullptr;
}

void leaveJob() {
    if (LocalProcess* process = processThatMayLeave()) process->leave();
}

/// Workers of a loader end so, and their rank, which waits for the end of a pipe that they hold, goes on when the
/// system has closed that. Any other process may do it in a handler that came anywhere, inside malloc as well: the
/// others find out that it is gone.
void leaveFamily() {
    if (LocalProcess* process = processThatMayLeave(); process && process->isForked()) process->beginEnding();
}

}  // namespace
}  // namespace rankscope::vgpu::threads

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::threads;

extern "C" {

pid_t fork() noexcept {
    ThreadClock* clock = isInsideCall() ? nullptr : activeClock();
    if (!clock) return realFork();
    LocalProcess& process = LocalProcess::instance();
    Arena& arena = process.arena();
    const LocalProcess::Child child = process.prepareFork(*clock);
    const pid_t pid = realFork();
    const int error = errno;
    if (pid == 0)
        LocalProcess::beginForked(arena, child);
    else
        process.forkEnded(child, pid);
    errno = error;
    return pid;
}

void _exit(int status) {
    leaveFamily();
    realExit(status);
    __builtin_unreachable();
}
void _Exit(int status) noexcept {
    leaveFamily();
    realExit(status);
    __builtin_unreachable();
}

int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
    leaveJob();
    return realExecve(path, arguments, environment);
}
int execv(const char* path, char* const* arguments) noexcept {
    leaveJob();
    return realExecve(path, arguments, environ);
}
int execvp(const char* file, char* const* arguments) noexcept {
    leaveJob();
    return realExecvpe(file, arguments, environ);
}
int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
    leaveJob();
    return realExecvpe(file, arguments, environment);
}
int fexecve(int descriptor, char* const* arguments, char* const* environment) noexcept {
    leaveJob();
    return realFexecve(descriptor, arguments, environment);
}

}  // extern "C"
