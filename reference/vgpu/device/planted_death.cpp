// SPDX-License-Identifier: Apache-2.0
// rankscopeVgpuKill: a process dies on purpose, at a reproducible point of virtual time.
#include <signal.h>
#include <unistd.h>

#include "reference/vgpu/device/activity.h"

using namespace rankscope::vgpu;

extern "C" void rankscopeVgpuKill(int signal) {
    LocalProcess& process = LocalProcess::instance();
    ThreadClock& thread = process.clock();
    process.settle();  // what ended up to now is known, whatever the others are doing
    {
        std::lock_guard guard(process.mutex());
        process.harvest(thread.ns);
    }
    deliverBuffers(true);
    struct sigaction fallback {};
    fallback.sa_handler = SIG_DFL;
    sigaction(signal, &fallback, nullptr);
    kill(getpid(), signal);
    while (true) pause();
}
