// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/virtual_gpu.h"

#include <dlfcn.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>

#include "reference/workloads/kernels.h"

namespace rankscope::reference {

namespace {

template <class Function>
void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

VirtualGpu::VirtualGpu() {
    void (*registerBody)(const void*, void (*)(void**)) = nullptr;
    void (*limitStructs)(const void*, size_t) = nullptr;
    find("rankscopeVgpuHostWork", m_hostWork);
    find("rankscopeVgpuKill", m_kill);
    find("rankscopeVgpuKernelBody", registerBody);
    find("rankscopeVgpuKernelStructs", limitStructs);
    if (registerBody && limitStructs) registerHostTwins(registerBody, limitStructs);
}

void VirtualGpu::hostWork(int64_t ns) const {
    if (m_hostWork) {
        m_hostWork(ns);
        return;
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
    while (std::chrono::steady_clock::now() < end) {
    }
}

void VirtualGpu::die(int signal) const {
    if (m_kill) m_kill(signal);
    raise(signal);
    abort();  // only for a signal that somebody blocked
}

}  // namespace rankscope::reference
