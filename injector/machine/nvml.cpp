// SPDX-License-Identifier: Apache-2.0
#include "injector/machine/nvml.h"

#include <dlfcn.h>

namespace rankscope::machine {

bool loadNvml(Nvml& nvml) noexcept {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return dlerror(), false;
    const auto find = [library]<typename Function>(Function& function, const char* name) {
        function = reinterpret_cast<Function>(dlsym(library, name));
    };
    find(nvml.init, "nvmlInit_v2");
    find(nvml.shutdown, "nvmlShutdown");
    find(nvml.deviceCount, "nvmlDeviceGetCount_v2");
    find(nvml.deviceByIndex, "nvmlDeviceGetHandleByIndex_v2");
    find(nvml.deviceByBusId, "nvmlDeviceGetHandleByPciBusId_v2");
    find(nvml.pciInfo, "nvmlDeviceGetPciInfo_v3");
    find(nvml.linkState, "nvmlDeviceGetNvLinkState");
    find(nvml.linkVersion, "nvmlDeviceGetNvLinkVersion");
    find(nvml.fieldValues, "nvmlDeviceGetFieldValues");
    find(nvml.pcieGeneration, "nvmlDeviceGetCurrPcieLinkGeneration");
    find(nvml.pcieMaxGeneration, "nvmlDeviceGetMaxPcieLinkGeneration");
    find(nvml.pcieWidth, "nvmlDeviceGetCurrPcieLinkWidth");
    dlerror();
    return nvml.init != nullptr && nvml.shutdown != nullptr;
}

}  // namespace rankscope::machine
