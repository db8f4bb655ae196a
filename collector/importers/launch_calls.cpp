// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/launch_calls.h"

#include <unordered_set>

namespace rankscope::collector {

void recogniseLaunches(RankRecording& recording) {
    std::unordered_set<uint32_t> launched;
    for (const store::Kernel& kernel : recording.kernels)
        if (kernel.correlationId) launched.insert(*kernel.correlationId);
    for (store::ApiCall& call : recording.apiCalls) {
        const bool isUnknown = call.kind == store::ApiKind::other && call.correlationId;
        if (isUnknown && launched.contains(*call.correlationId)) call.kind = store::ApiKind::launch;
    }
}

}  // namespace rankscope::collector
