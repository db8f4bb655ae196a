// SPDX-License-Identifier: Apache-2.0
// Processes that a thread with a clock forks off are part of the job from their first instant, at that thread's clock;
// they leave it when they end or become another program.
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

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

// What tells a program its place in the job: the process's and the thread's number, and where the arena lies.
constexpr const char* kPlaceVariable = "RANKSCOPE_VGPU_PLACE=";
constexpr size_t kPlaceVariableLength = 21;

bool isSameProgram(const char* path) {
    struct stat wanted, own;
    return stat(path, &wanted) == 0 && stat("/proc/self/exe", &own) == 0 && wanted.st_dev == own.st_dev &&
           wanted.st_ino == own.st_ino;
}

/// Programs that a process with a clock starts are none of the job's, but for those that are the same program as the
/// process itself: Python that starts another Python shares its work with it (loaders by `spawn` or `forkserver`). Not
/// those of a process that gave no device work: a launcher's ranks are processes of their own. Such a program
/// gets a place as a forked process does, and takes that when it has loaded this library. Only for children of vfork(),
/// which run in their parent's memory: in the others this has become a process of the job in fork().
class Started {
  public:
    Started(const char* path, char* const* environment) {
        LocalProcess* process = LocalProcess::ifAny();
        if (!process || !process->isUnderWay() || process->pid() != getppid() || isInsideCall() ||
            SharedLock::isHeldHere() || !isSameProgram(path))
            return;
        ThreadClock* clock = activeClock();
        size_t count = 0;
        while (environment && environment[count]) count++;
        if (!clock || count + 2 > kMostVariables) return;
        m_child = process->prepareFork(*clock);
        if (m_child.index == kNone) return;
        m_process = process;
        process->forkEnded(m_child, getpid());
        std::snprintf(m_place, sizeof m_place, "%s%u:%u:%s", kPlaceVariable, m_child.index,
                      static_cast<unsigned>(m_child.thread - process->arena().threads), arenaPath());
        std::copy_n(environment, count, m_environment);
        m_environment[count] = m_place;
        m_environment[count + 1] = nullptr;
    }
    /// There is no such program after all.
    ~Started() {
        if (m_process) m_process->forkEnded(m_child, -1);
    }
    Started(const Started&) = delete;
    Started& operator=(const Started&) = delete;

    char* const* environment(char* const* otherwise) const { return m_process ? m_environment : otherwise; }

  private:
    static constexpr size_t kMostVariables = 4096;
    LocalProcess* m_process = nullptr;  ///< the parent; null: the program is none of the job's
    LocalProcess::Child m_child;
    char m_place[256];
    char* m_environment[kMostVariables];
};

[[gnu::constructor]] void takePlace() {
    const std::string name(kPlaceVariable, kPlaceVariableLength - 1);
    const char* place = std::getenv(name.c_str());
    if (!place) return;
    unsigned index = 0, thread = 0;
    char path[256];
    const bool isWhole = std::sscanf(place, "%u:%u:%255s", &index, &thread, path) == 3;
    unsetenv(name.c_str());  // it is nobody else's
    if (isWhole) LocalProcess::beginStarted(path, index, thread);
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
    const Started started(path, environment);
    return realExecve(path, arguments, started.environment(environment));
}
int execv(const char* path, char* const* arguments) noexcept {
    leaveJob();
    const Started started(path, environ);
    return realExecve(path, arguments, started.environment(environ));
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
