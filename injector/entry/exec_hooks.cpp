// SPDX-License-Identifier: Apache-2.0
// exec replaces the process without a destructor. The file gets its last word before, and takes it back when exec
// fails.
#include "injector/entry/exec_hooks.h"

#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>

#include "injector/entry/libc_function.h"
#include "injector/export.h"
#include "injector/session/session.h"

namespace rankscope::injector {
namespace {

/// The functions glibc offers, apart from those that take their arguments one by one: these are put together here.
struct RealExec {
    int (*execve)(const char*, char* const*, char* const*) = nullptr;
    int (*execv)(const char*, char* const*) = nullptr;
    int (*execvp)(const char*, char* const*) = nullptr;
    int (*execvpe)(const char*, char* const*, char* const*) = nullptr;
    int (*fexecve)(int, char* const*, char* const*) = nullptr;
};

constinit RealExec g_real;

template <typename Function>
void find(Function& function, const char* name) noexcept {
    function = reinterpret_cast<Function>(findLibcFunction(name));
}

/// Says that the process becomes another one. `likely` is false when that is known to fail: programs try one folder of
/// PATH after the other.
template <typename Exec>
int becoming(bool likely, Exec exec) noexcept {
    // Says no in a vfork child, too: its process id is not the session's. It writes nothing of ours.
    const bool told = likely && g_session.beforeExec();
    const int result = exec();
    if (told) g_session.afterFailedExec();
    return result;
}

bool isExecutable(const char* path) noexcept {
    const int error = errno;
    const bool executable = path != nullptr && syscall(SYS_faccessat, AT_FDCWD, path, X_OK) == 0;
    errno = error;
    return executable;
}

/// What execl and its like were called with, as an array on the caller's stack.
size_t countArguments(va_list list) noexcept {
    size_t count = 1;
    while (va_arg(list, char*) != nullptr) ++count;
    return count;
}

}  // namespace

void findRealExec() noexcept {
    find(g_real.execve, "execve");
    find(g_real.execv, "execv");
    find(g_real.execvp, "execvp");
    find(g_real.execvpe, "execvpe");
    find(g_real.fexecve, "fexecve");
    if (&dlerror != nullptr) dlerror();
}

}  // namespace rankscope::injector

using namespace rankscope::injector;

/// Before our constructor ran, from another library's.
#define RANKSCOPE_REAL_EXEC(function)               \
    if (g_real.function == nullptr) findRealExec(); \
    const auto real = g_real.function;              \
    if (real == nullptr) {                          \
        errno = ENOSYS;                             \
        return -1;                                  \
    }

RANKSCOPE_EXPORT int execve(const char* path, char* const argv[], char* const envp[]) noexcept {
    RANKSCOPE_REAL_EXEC(execve)
    return becoming(isExecutable(path), [&] { return real(path, argv, envp); });
}

RANKSCOPE_EXPORT int execv(const char* path, char* const argv[]) noexcept {
    RANKSCOPE_REAL_EXEC(execv)
    return becoming(isExecutable(path), [&] { return real(path, argv); });
}

RANKSCOPE_EXPORT int execvp(const char* file, char* const argv[]) noexcept {
    RANKSCOPE_REAL_EXEC(execvp)
    return becoming(true, [&] { return real(file, argv); });
}

RANKSCOPE_EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) noexcept {
    RANKSCOPE_REAL_EXEC(execvpe)
    return becoming(true, [&] { return real(file, argv, envp); });
}

RANKSCOPE_EXPORT int fexecve(int descriptor, char* const argv[], char* const envp[]) noexcept {
    RANKSCOPE_REAL_EXEC(fexecve)
    return becoming(true, [&] { return real(descriptor, argv, envp); });
}

// Puts the arguments from `first` on into the array argv, which lives as long as the calling function; `list` stands
// behind the closing null.
#define RANKSCOPE_GATHER(first)                                             \
    va_list list;                                                           \
    va_start(list, first);                                                  \
    const size_t count = countArguments(list);                              \
    va_end(list);                                                           \
    auto** argv = static_cast<char**>(alloca((count + 1) * sizeof(char*))); \
    argv[0] = const_cast<char*>(first);                                     \
    va_start(list, first);                                                  \
    for (size_t i = 1; i <= count; ++i) argv[i] = va_arg(list, char*)

RANKSCOPE_EXPORT int execl(const char* path, const char* first, ...) noexcept {
    RANKSCOPE_GATHER(first);
    va_end(list);
    return execv(path, argv);
}

RANKSCOPE_EXPORT int execlp(const char* file, const char* first, ...) noexcept {
    RANKSCOPE_GATHER(first);
    va_end(list);
    return execvp(file, argv);
}

RANKSCOPE_EXPORT int execle(const char* path, const char* first, ...) noexcept {
    RANKSCOPE_GATHER(first);
    char* const* envp = va_arg(list, char* const*);
    va_end(list);
    return execve(path, argv, envp);
}
