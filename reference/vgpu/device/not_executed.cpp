// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/not_executed.h"

#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>

#include "reference/vgpu/device/framework_library.h"
#include "reference/vgpu/device/kernel_registry.h"

namespace rankscope::vgpu {
namespace {

void tellOnce(const std::string& whose, const char* kernel, const char* advice = "") {
    static std::mutex mutex;
    static auto* told = new std::set<std::string>;
    std::lock_guard guard(mutex);
    if (!told->insert(whose).second || !isFirstRank()) return;
    std::fprintf(
        stderr,
        "rankscope virtual GPUs: kernels %s (the first: %s) are not executed: what they write is not computed, "
        "and they take the time that their operator's tensors or their grids suggest%s\n",
        whose.c_str(), kernel, advice);
}

}  // namespace

void tellOfForeignKernel(const Kernel& kernel) {
    const std::string& framework = frameworkFolder();
    Dl_info info{};
    if (framework.empty() || !dladdr(kernel.hostFunction, &info) || !info.dli_fname) return;
    if (std::filesystem::path(info.dli_fname).parent_path() != framework)
        tellOnce(std::string("of ") + info.dli_fname, kernel.name.c_str());
}

void tellOfCompiledKernel(const char* name) {
    tellOnce(
        "compiled at run time", name,
        " (to have small values right that torch.compile's kernels write, run without them: TORCH_COMPILE_DISABLE=1)");
}

}  // namespace rankscope::vgpu
