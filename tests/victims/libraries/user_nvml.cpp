// SPDX-License-Identifier: Apache-2.0
// An NVML with one device, on bus 41, with three NVLinks, one of them down. VICTIM_NVML says how it begins: at once,
// "slow" (it never comes back), "forks" (it runs a program first, as the real one does where device nodes are missing),
// "fails".
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct FieldValue {
    uint32_t fieldId, scopeId;
    int64_t times[2];
    uint32_t valueType;
    int32_t status;
    uint64_t value;
};

bool isAsked(const char* how) {
    const char* asked = std::getenv("VICTIM_NVML");
    return asked != nullptr && std::strcmp(asked, how) == 0;
}

}  // namespace

EXPORT int nvmlInit_v2() {
    if (isAsked("slow")) sleep(3600);
    if (isAsked("fails")) return 9;
    if (!isAsked("forks")) return 0;
    const pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/true", "true", nullptr);
        _exit(1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return 0;
}
EXPORT int nvmlShutdown() {
    return 0;
}
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* busId, void** device) {
    if (std::strcmp(busId, "0000:41:00.0") != 0) return 6;
    return *device = const_cast<char*>("device"), 0;
}
EXPORT int nvmlDeviceGetNvLinkState(void*, uint32_t link, uint32_t* isActive) {
    return link < 3 ? (*isActive = link != 1, 0) : 2;
}
EXPORT int nvmlDeviceGetNvLinkVersion(void*, uint32_t, uint32_t* version) {
    return *version = 4, 0;
}
EXPORT int nvmlDeviceGetFieldValues(void*, int, FieldValue* field) {
    return field->valueType = 1, field->status = 0, field->value = 25000, 0;
}
EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void*, uint32_t* lanes) {
    return *lanes = 16, 0;
}
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void*, uint32_t* generation) {
    return *generation = 4, 0;
}
