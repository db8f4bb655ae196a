// SPDX-License-Identifier: Apache-2.0
// What runs in every process that inherits LD_PRELOAD, shells and launchers included: it arms the library and nothing
// else.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "injector/entry/environment.h"
#include "injector/entry/exec_hooks.h"
#include "injector/export.h"
#include "injector/hooks/communicator_recorder.h"
#include "injector/loaded_libraries.h"
#include "injector/nccl_plugin/chained_plugin.h"
#include "injector/nccl_plugin/plugin_events.h"
#include "injector/nvtx/domains.h"
#include "injector/nvtx/payload_schemas.h"
#include "injector/record/permanent_memory.h"
#include "injector/session/session.h"
#include "injector/text.h"

/// Marks the one copy that works when the library was preloaded twice under different paths.
RANKSCOPE_EXPORT const char rankscopeInjector[] = "rankscope injector";

namespace rankscope::injector {
namespace {

constinit const char kInsideThisCopy = 0;

bool isOurs(const char* value, const char* self) noexcept {
    return value != nullptr && std::strcmp(value, self) == 0;
}

/// NVTX, the CUDA driver and NCCL each load one library named by a variable. Ours goes in when the user named none;
/// what the user named is kept in a variable of our own, to be chained.
void nameOurselves(const char* variable, const char* chained, const char* self) noexcept {
    const char* users = readVariable(variable);
    if (isOurs(users, self)) return;  // inherited from our parent
    if (users != nullptr && users[0] != '\0') {
        if (chained == nullptr) return;
        if (!writeVariable(chained, users)) return;
    }
    writeVariable(variable, self);
}

/// With rows for it in the environment, our tuner plugin, which lies beside this library, takes the place of the
/// user's, which it asks in turn.
void nameTuner(const char* self) noexcept {
    const char* rows = readVariable("RANKSCOPE_TUNER_ROWS");
    if (rows == nullptr || rows[0] == '\0') return;
    FixedText<4096> path;
    path.append(self, static_cast<size_t>(std::strrchr(self, '/') + 1 - self)).append("librankscope_tuner.so");
    const int before = errno;
    if (!path.wasCut() && access(path.c_str(), R_OK) == 0)
        nameOurselves("NCCL_TUNER_PLUGIN", "RANKSCOPE_CHAIN_NCCL_TUNER", path.c_str());
    errno = before;
}

void beforeFork() {
    g_session.beforeFork();  // waits for a thread that may look for a loaded library
    lockLoadedLibraries();
}
void afterForkInParent() {
    unlockLoadedLibraries();
    g_session.afterForkInParent();
}
void afterForkInChild() {
    // Whatever thread held a lock at the fork does not exist here.
    renewLoadedLibraries();
    renewPermanentMemoryLock();
    renewPluginLock();
    renewChainLock();
    nvtx::renewDomainLock();
    nvtx::renewSchemaLock();
    g_communicators.clear();
    g_session.afterForkInChild();
}

/// False: a glibc before 2.34, and a process without libdl or libpthread. Whoever uses a GPU has them from the start,
/// unless it opens CUDA itself (packaging/README.md says what to preload then).
bool hasWhatWeNeed() noexcept {
    return &dlsym != nullptr && &dlopen != nullptr && &dladdr != nullptr && &dlerror != nullptr &&
           &pthread_create != nullptr && &pthread_key_create != nullptr && &pthread_setspecific != nullptr &&
           &pthread_attr_setstacksize != nullptr && &pthread_mutex_trylock != nullptr;
}

__attribute__((constructor)) void arm() {
    findRealExec();
    if (!hasWhatWeNeed()) {
        g_session.switchOff();
        return;
    }
    const char* directory = readVariable("RANKSCOPE_DIR");
    Dl_info info{};
    // Two copies under two names both find the first one's symbol, so each asks which file it is in itself.
    const void* first = dlsym(RTLD_DEFAULT, "rankscopeInjector");
    dlerror();
    Dl_info firstInfo{};
    const bool known = dladdr(&kInsideThisCopy, &info) != 0 && info.dli_fname != nullptr;
    const bool isSecond = first != nullptr && dladdr(first, &firstInfo) != 0 && firstInfo.dli_fbase != info.dli_fbase;
    if (directory == nullptr || directory[0] == '\0' || !known || isSecond) {
        g_session.switchOff();
        return;
    }
    pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
    if (info.dli_fname[0] != '/') return;
    // The user's NVTX tool stays alone: NVTX hands its functions to one tool, and calling a second one's behind its
    // back is not safe.
    nameOurselves("NVTX_INJECTION64_PATH", nullptr, info.dli_fname);
    nameOurselves("CUDA_INJECTION64_PATH", "RANKSCOPE_CHAIN_CUDA_INJECTION", info.dli_fname);
    nameOurselves("NCCL_PROFILER_PLUGIN", "RANKSCOPE_CHAIN_NCCL_PROFILER", info.dli_fname);
    nameTuner(info.dli_fname);
}

__attribute__((destructor)) void disarm() {
    g_session.finish(EndCause::exit, -1);
}

}  // namespace
}  // namespace rankscope::injector
