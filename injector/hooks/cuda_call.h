// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/hooks/hook.h"
#include "injector/session/session.h"

namespace rankscope::injector {

// The few types of the CUDA runtime that cross a hook, in our own words; the same from CUDA 11.8 to 13.x.
using CudaStream = void*;
using CudaEvent = void*;
struct CudaDim3 {
    unsigned x, y, z;
};
/// Head of cudaLaunchConfig_t.
struct CudaLaunchConfig {
    CudaDim3 grid;
    CudaDim3 block;
    size_t sharedBytes;
    CudaStream stream;
};

constexpr int kCudaSymbolNotFound =
    302;  ///< cudaErrorSharedObjectSymbolNotFound: what we return when the real function cannot be found

inline uint64_t toArgument(const void* handle) noexcept {
    return reinterpret_cast<uint64_t>(handle);
}
inline uint64_t toArgument(size_t bytes) noexcept {
    return bytes;
}

/// Whether a hook that runs now is the job's own call and is to be recorded.
inline bool isRecordedCudaCall() noexcept {
    if (__builtin_expect(!g_session.isRecording(Cause::gpu), 0)) return false;
    return t_thread.depth == 0 && g_session.config().traces(traceApi);
}

/// Stamps, calls, stamps, pushes. `call` is the real function with its arguments.
template <typename Call>
inline int recordCudaCall(capture::CudaApi api, uint64_t argument, Call call) noexcept {
    RecursionGuard guard;
    capture::ApiCallRecord record;
    record.head = {capture::RecordType::apiCall, 1, static_cast<uint16_t>(api)};
    record.argument = argument;
    record.startNs = g_session.now();
    const int result = call();
    record.endNs = g_session.now();
    record.seq = g_session.nextSeq();
    g_session.push(record, record.endNs);
    return result;
}

inline void recordAllocation(capture::CudaApi api, uint64_t bytes, const void* address) noexcept {
    RecursionGuard guard;
    capture::AllocationRecord record;
    record.head = {capture::RecordType::allocation, 1, static_cast<uint16_t>(api)};
    record.seq = g_session.nextSeq();
    record.timeNs = g_session.now();
    record.bytes = bytes;
    record.address = reinterpret_cast<uint64_t>(address);
    g_session.push(record, record.timeNs);
}

}  // namespace rankscope::injector

/// Looks the real function up, or returns the runtime's own kind of error when there is none.
#define RANKSCOPE_REAL_CUDA(function)                                                                               \
    static constinit RealSymbol<decltype(&function)> realSymbol;                                                    \
    const auto real =                                                                                               \
        realSymbol.get(#function, "libcudart.so", reinterpret_cast<void*>(&function), __builtin_return_address(0)); \
    if (__builtin_expect(real == nullptr, 0)) return kCudaSymbolNotFound

/// As RANKSCOPE_HOOK, for a function of the CUDA runtime.
#define RANKSCOPE_CUDA_FUNCTION(function, parameters, arguments, ...) \
    RANKSCOPE_HOOK(function, "libcudart.so", kCudaSymbolNotFound, parameters, arguments, __VA_ARGS__)

/// A hook: function, what it is, its argument of interest, (parameters), arguments.
#define RANKSCOPE_CUDA_HOOK(function, api, argument, parameters, ...)                             \
    RANKSCOPE_CUDA_FUNCTION(                                                                      \
        function, parameters, (__VA_ARGS__), if (!isRecordedCudaCall()) return real(__VA_ARGS__); \
        return recordCudaCall(CudaApi::api, toArgument(argument), [&] { return real(__VA_ARGS__); });)
