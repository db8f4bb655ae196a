// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/nccl_plugin/profiler_abi.h"

namespace rankscope::injector {

/// The profiler plugin the user had asked NCCL for before we took its place: it is loaded once, and every call goes to
/// it as well. It must speak the version NCCL speaks with us, or an older one of v5 to v7; otherwise it is left out and
/// a status record says so.
struct ChainedPlugin {
    const profiler_abi::ProfilerV3* v3 = nullptr;
    const profiler_abi::ProfilerV4* v4 = nullptr;
    const profiler_abi::ProfilerV5* v5 = nullptr;
    const profiler_abi::ProfilerV5* v6 = nullptr;
    const profiler_abi::ProfilerV5* v7 = nullptr;
};

/// Loads the plugin of RANKSCOPE_CHAIN_NCCL_PROFILER on the first call; all null when there is none.
const ChainedPlugin& chainedPlugin() noexcept;

/// In a forked child.
void renewChainLock() noexcept;

/// Says once that the user's plugin does not speak NCCL's version.
void tellNotChained(int version) noexcept;

}  // namespace rankscope::injector
