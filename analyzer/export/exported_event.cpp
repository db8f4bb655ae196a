// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/exported_event.h"

namespace rankscope::exports {

std::string_view toText(EventKind kind) {
    switch (kind) {
        case EventKind::step:
            return "step";
        case EventKind::nvtx:
            return "nvtx";
        case EventKind::ncclCall:
            return "nccl_call";
        case EventKind::apiCall:
            return "api_call";
        case EventKind::kernel:
            return "kernel";
        case EventKind::ncclKernel:
            return "nccl_kernel";
        case EventKind::copy:
            return "memcpy";
        case EventKind::set:
            return "memset";
        case EventKind::finding:
            return "finding";
    }
    return "unknown";
}

}  // namespace rankscope::exports
