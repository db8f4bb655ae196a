// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rankscope::injector {

/// The sources the user asked for (RANKSCOPE_TRACE).
enum Trace : uint32_t { traceCuda = 1, traceNccl = 2, traceNvtx = 4, traceApi = 8, traceAll = 15 };

enum class CaptureRange : uint8_t { none, cudaProfilerApi, nvtxRange, steps };

/// What the environment says. Plain data; read once when recording starts.
struct Config {
    char directory[3072] = {};  ///< empty: do not record
    uint32_t trace = traceAll;
    uint64_t maxBytes = 2ull << 30;
    int64_t delayNs = 0;
    int64_t durationNs = 0;  ///< 0: until the end
    CaptureRange range = CaptureRange::none;
    char rangeName[256] = {};  ///< of nvtxRange
    int64_t firstStep = 0;     ///< of steps, inclusive
    int64_t lastStep = 0;
    bool cuptiClock = false;  ///< virtual run
    /// RANKSCOPE_NCCL_CHANNELS: 1 each kernel channel, spans the time from the first to the last of an operation.
    enum class Channels : uint8_t { none, each, spans } ncclChannels = Channels::none;
    bool ncclProxy = true;  ///< network transfers of NCCL's proxy thread
    int64_t ringNs = 0;     ///< RANKSCOPE_RING_S: how long calls are kept at full detail; 0: as long as the file
    bool kernelSummaries =
        false;  ///< RANKSCOPE_KERNELS=summaries: of the devices' activity kernels only, and these by step; with a ring
    int64_t slowStepE9 = 0;   ///< RANKSCOPE_SLOW_STEP times 1e9: that much of the median is a slow step; 0: none is
    bool environment = true;  ///< RANKSCOPE_ENVIRONMENT=off: no variable is recorded
    bool mapsRings = true;    ///< RANKSCOPE_RINGS=memory: false, as on a network file system
    bool verbose = false;
    char problem[128] = {};  ///< a value that was not understood and therefore ignored

    bool traces(Trace source) const { return (trace & source) != 0; }
};

/// `get` is getenv in the library and a table in tests. Never fails: what is not understood keeps its default and is
/// named in `problem`.
Config readConfig(const char* (*get)(const char* name)) noexcept;

}  // namespace rankscope::injector
