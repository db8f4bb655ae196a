// SPDX-License-Identifier: Apache-2.0
// The words of trace.db: values that are TEXT in the file and enums in the program. A text this version does not know
// reads as `unknown`.
#pragma once

#include <cstdint>
#include <string_view>

namespace rankscope::store {

enum class Op : uint8_t {
    unknown,
    allReduce,
    allGather,
    reduceScatter,
    broadcast,
    reduce,
    allToAll,
    gather,
    scatter,
    send,
    recv
};
enum class Algorithm : uint8_t { unknown, tree, ring, collnetDirect, collnetChain, nvls, nvlsTree, pat };
enum class Protocol : uint8_t { unknown, ll, ll128, simple };
enum class DataType : uint8_t { i8, u8, i32, u32, i64, u64, f16, f32, f64, bf16, f8e4m3, f8e5m2, unknown };
enum class RankState : uint8_t { complete, died, missing, running, unknown };
enum class Severity : uint8_t { info, warning, error };

/// api_call.kind
enum class ApiKind : uint8_t {
    other = 0,
    launch = 1,
    copy = 2,
    set = 3,
    allocate = 4,
    free = 5,
    synchronize = 6,
    event = 7,
    graphLaunch = 8
};
/// api_call.source
enum class ApiSource : uint8_t { hook = 1, cuptiRuntime = 2, cuptiDriver = 3, imported = 4 };
/// kernel.nccl
enum class NcclKernel : uint8_t { no = 0, byCall = 1, byName = 2 };
/// nvtx.kind
enum class NvtxKind : uint8_t { pushPop = 1, startEnd = 2, mark = 3 };

/// Domains of nvtx rows that an importer made of a profiler's own host events: `payload` is then the usual duration of
/// that name, in ns.
inline constexpr std::string_view kOperatorDomain = "cpu_op", kPythonDomain = "python_function";

/// nccl_call.evidence
namespace evidence {
inline constexpr int32_t kHook = 1, kNvtxPayload = 2, kPlugin = 4, kExternalCorrelation = 8, kImported = 16,
                         kInferred = 32;
}

std::string_view toText(Op value) noexcept;
std::string_view toText(Algorithm value) noexcept;  ///< empty for unknown: NULL in the file
std::string_view toText(Protocol value) noexcept;   ///< empty for unknown
std::string_view toText(DataType value) noexcept;   ///< empty for unknown
std::string_view toText(RankState value) noexcept;
std::string_view toText(Severity value) noexcept;

template <typename Enum>
Enum fromText(std::string_view text) noexcept;

constexpr bool isP2p(Op op) noexcept {
    return op == Op::send || op == Op::recv;
}
/// Nobody can leave these before the last member has arrived.
constexpr bool isSynchronizing(Op op) noexcept {
    return op == Op::allReduce || op == Op::allGather || op == Op::reduceScatter || op == Op::allToAll;
}
/// Bytes of one element, 0 when unknown.
int32_t elementBytes(DataType type) noexcept;

}  // namespace rankscope::store
