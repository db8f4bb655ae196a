// SPDX-License-Identifier: Apache-2.0
// Ways to end a process that skip destructors.
#include <sys/syscall.h>
#include <unistd.h>

#include "injector/entry/libc_function.h"
#include "injector/export.h"
#include "injector/session/session.h"

namespace {

[[noreturn]] void leave(int status) noexcept {
    // finish() compares process ids: a vfork child, which shares our memory, leaves without touching it.
    rankscope::injector::g_session.finish(rankscope::injector::EndCause::quickExit, status);
    for (;;) syscall(SYS_exit_group, status);
}

}  // namespace

// Remembers the status; the handler that session.cpp registers with at_quick_exit does the rest, after the job's own
// handlers began.
RANKSCOPE_EXPORT [[noreturn]] void quick_exit(int status) {
    rankscope::injector::g_session.noteExitStatus(status);
    using QuickExit = void (*)(int);
    if (const auto real = reinterpret_cast<QuickExit>(rankscope::injector::findLibcFunction("quick_exit")))
        real(status);
    leave(status);
}
RANKSCOPE_EXPORT [[noreturn]] void _exit(int status) {
    leave(status);
}
RANKSCOPE_EXPORT [[noreturn]] void _Exit(int status) {
    leave(status);
}
