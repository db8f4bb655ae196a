// SPDX-License-Identifier: Apache-2.0
// Our NCCL tuner plugin is a library of its own, which jobs may use without the injector. Under the injector it finds
// this function and says what it does, so that the trace tells that the job was tuned.
#include "injector/export.h"
#include "injector/session/session.h"

RANKSCOPE_EXPORT void rankscopeTellTuner(int status, const char* message) {
    using namespace rankscope::injector;
    const ErrnoKeeper keep;
    if (g_session.isAlive(Cause::gpu))
        g_session.tellStatus(rankscope::capture::Source::ncclTuner, static_cast<uint16_t>(status), 0, message);
}
