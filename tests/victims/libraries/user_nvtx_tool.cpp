// SPDX-License-Identifier: Apache-2.0
// The user's own NVTX tool: counts pushes and tells the count at the end.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>

namespace {

int pushes = 0;

int NVTX_API onPush(const char*) {
    return ++pushes;
}

__attribute__((destructor)) void tell() {
    if (pushes == 0) return;
    std::printf("user's NVTX tool: %d pushes\n", pushes);
    std::fflush(stdout);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t getExportTable) {
    const auto* table = static_cast<const NvtxExportTableCallbacks*>(getExportTable(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable functions = nullptr;
    unsigned int size = 0;
    if (table == nullptr || table->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size) == 0) return 0;
    *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(onPush);
    return 1;
}
