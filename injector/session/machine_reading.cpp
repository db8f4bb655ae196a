// SPDX-License-Identifier: Apache-2.0
#include "injector/session/machine_reading.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <csignal>
#include <ctime>

#include "injector/machine/device_links.h"
#include "injector/machine/host_ports.h"
#include "injector/real_symbol.h"
#include "injector/record/futex.h"
#include "injector/session/session.h"

namespace rankscope::injector {
namespace {

constexpr int kMostDevices = 64;
constexpr size_t kStackBytes = 1u << 20;
constexpr int64_t kForkWaitNs = 2'000'000'000;

/// NVML runs programs of its own (nvidia-modprobe): a fork on the reading thread waits for nothing.
constinit thread_local bool t_isReading __attribute__((tls_model("initial-exec"))) = false;

/// The CUDA driver that the process has loaded, asked only for what begins nothing.
struct Driver {
    int (*deviceCount)(int*) = nullptr;
    int (*contextState)(int, unsigned*, int*) = nullptr;  // cuDevicePrimaryCtxGetState
    int (*busId)(char*, int, int) = nullptr;

    Driver() noexcept {
        deviceCount = reinterpret_cast<decltype(deviceCount)>(findInLoaded("libcuda.so", "cuDeviceGetCount"));
        contextState =
            reinterpret_cast<decltype(contextState)>(findInLoaded("libcuda.so", "cuDevicePrimaryCtxGetState"));
        busId = reinterpret_cast<decltype(busId)>(findInLoaded("libcuda.so", "cuDeviceGetPCIBusId"));
    }

    /// Devices on which the process has a context; bit by ordinal.
    uint64_t devicesInUse() const noexcept {
        int count = 0;
        if (deviceCount == nullptr || contextState == nullptr || busId == nullptr || deviceCount(&count) != 0) return 0;
        uint64_t inUse = 0;
        for (int device = 0; device < count && device < kMostDevices; ++device) {
            unsigned flags = 0;
            int isActive = 0;
            if (contextState(device, &flags, &isActive) == 0 && isActive != 0) inUse |= uint64_t{1} << device;
        }
        return inUse;
    }
};

void addDevices(uint64_t devices, const Driver& driver, machine::LinkList& links) noexcept {
    machine::Nvml nvml;
    if (!machine::loadNvml(nvml) || nvml.deviceByBusId == nullptr || nvml.init() != machine::kNvmlSuccess) return;
    for (int device = 0; device < kMostDevices; ++device) {
        if ((devices >> device & 1) == 0) continue;
        machine::DevicePlace place{device, {}};
        machine::NvmlDevice handle = nullptr;
        if (driver.busId(place.busId, sizeof place.busId - 1, device) != 0 ||
            nvml.deviceByBusId(place.busId, &handle) != machine::kNvmlSuccess)
            continue;
        machine::addDeviceLinks(nvml, handle, device, links);
        links.addPlace(place);
    }
    nvml.shutdown();
}

void addVirtualDevices(machine::LinkList& links) noexcept {
    machine::Nvml nvml;
    if (machine::loadNvml(nvml)) machine::addLinksOfAllDevices(nvml, links);
}

int64_t monotonicNs() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

void MachineReading::begin(Tell tell, bool isVirtual) noexcept {
    if (m_isClosed.load(std::memory_order_acquire) || m_isRunning.load(std::memory_order_acquire) != 0) return;
    // The new thread inherits that all signals are blocked: the job's signals reach the job's threads. Nor may a
    // handler run that forks.
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    if (m_gate.tryLock()) {
        uint32_t idle = 0;
        if (m_isRunning.compare_exchange_strong(idle, 1)) startThread(tell, isVirtual);
        m_gate.unlock();
    }
    sigprocmask(SIG_SETMASK, &old, nullptr);
}

void MachineReading::startThread(Tell tell, bool isVirtual) noexcept {
    m_tell = tell;
    m_isVirtual = isVirtual;
    m_isStuck.store(false, std::memory_order_relaxed);  // the reading before this one has ended after all
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_t thread;
    if (pthread_create(
            &thread, &attributes, [](void* self) { return entry(self); }, this) != 0)
        m_isRunning.store(0);
    pthread_attr_destroy(&attributes);
}

void* MachineReading::entry(void* self) noexcept {
    auto* reading = static_cast<MachineReading*>(self);
    prctl(PR_SET_NAME, "rankscope", 0, 0, 0);
    t_isReading = true;
    {
        const RecursionGuard guard;
        reading->read();
    }
    reading->m_isRunning.store(0, std::memory_order_release);
    futexWake(reading->m_isRunning);
    return nullptr;
}

void MachineReading::read() noexcept {
    static constinit machine::LinkList links;  // one reading at a time
    links = {};
    if (m_isVirtual) {
        if (m_isHostRead) return;
        addVirtualDevices(links);
    } else {
        const Driver driver;
        const uint64_t devices = driver.devicesInUse() & ~m_devicesRead;
        if (devices == 0) return;
        addDevices(devices, driver, links);
        m_devicesRead |= devices;
    }
    if (!m_isHostRead) {
        m_isHostRead = true;
        if (const char* sysfs = machine::sysfsRoot(m_isVirtual); sysfs != nullptr) machine::addHostPorts(sysfs, links);
    }
    if ((links.size() > 0 || links.placeCount() > 0) && !m_isClosed.load(std::memory_order_acquire)) m_tell(links);
}

void MachineReading::wait(int64_t ns) noexcept {
    const int64_t untilNs = monotonicNs() + ns;
    while (m_isRunning.load(std::memory_order_acquire) != 0 && !m_isStuck.load(std::memory_order_relaxed)) {
        const int64_t leftNs = untilNs - monotonicNs();
        if (leftNs <= 0) return m_isStuck.store(true, std::memory_order_relaxed);
        futexWait(m_isRunning, 1, leftNs);
    }
}

void MachineReading::close(int64_t ns) noexcept {
    wait(ns);
    m_isClosed.store(true, std::memory_order_release);
}

void MachineReading::beforeFork() noexcept {
    m_gate.lock();
    if (!t_isReading) wait(kForkWaitNs);
}

void MachineReading::afterForkInChild() noexcept {
    m_gate.renew();
    m_isRunning.store(0);
    m_isClosed.store(false);
    m_isStuck.store(false);
    m_devicesRead = 0;
    m_isHostRead = false;
    t_isReading = false;
}

}  // namespace rankscope::injector
