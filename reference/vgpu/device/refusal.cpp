// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/refusal.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string_view>

#include "reference/vgpu/device/deadlock.h"
#include "reference/vgpu/device/local_process.h"

using namespace rankscope::vgpu;

namespace {

/// PyTorch has kernels of its own for recurrent layers and convolutions.
const char* wayAround(std::string_view library) {
    return library.starts_with("libcudnn") ? "recurrent layers and convolutions of PyTorch do without it where "
                                             "torch.backends.cudnn.enabled = False; or "
                                           : "";
}

}  // namespace

extern "C" void rankscopeVgpuRefuse(const char* function, const char* library) {
    static std::atomic<bool> isEnding{false};
    while (isEnding.exchange(true)) pause();  // another thread has called something as well, and the process is going
    LocalProcess& process = LocalProcess::instance();
    std::fprintf(stderr,
                 "rankscope virtual GPUs: rank %d called %s of %s, which is not modelled: the job ends here (exit "
                 "status %d)\n"
                 "  hint: %stake what leads to this call out of the job, or run it on real GPUs, without --virtual; "
                 "reference/vgpu/README.md tells what is modelled\n",
                 process.rank(), function, library, kExitNotModelled, wayAround(library));
    endEarly(kExitNotModelled);
}
