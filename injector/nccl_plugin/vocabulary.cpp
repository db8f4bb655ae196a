// SPDX-License-Identifier: Apache-2.0
#include "injector/nccl_plugin/vocabulary.h"

#include <strings.h>

namespace rankscope::injector {

namespace {

template <typename Value>
struct Word {
    const char* word;
    Value value;
};

template <typename Value, size_t N>
Value lookUp(const Word<Value> (&words)[N], const char* word, Value unknown) noexcept {
    if (word == nullptr) return unknown;
    for (const auto& known : words)
        if (strcasecmp(known.word, word) == 0) return known.value;
    return unknown;
}

}  // namespace

capture::NcclOp opFromWord(const char* word) noexcept {
    using capture::NcclOp;
    static constexpr Word<NcclOp> kWords[] = {
        {"AllReduce", NcclOp::allReduce}, {"AllGather", NcclOp::allGather}, {"ReduceScatter", NcclOp::reduceScatter},
        {"Broadcast", NcclOp::broadcast}, {"Reduce", NcclOp::reduce},       {"AlltoAll", NcclOp::allToAll},
        {"Gather", NcclOp::gather},       {"Scatter", NcclOp::scatter},     {"Send", NcclOp::send},
        {"Recv", NcclOp::recv},
    };
    return lookUp(kWords, word, NcclOp::unknown);
}

capture::Algorithm algorithmFromWord(const char* word) noexcept {
    using capture::Algorithm;
    static constexpr Word<Algorithm> kWords[] = {
        {"TREE", Algorithm::tree},
        {"RING", Algorithm::ring},
        {"COLLNET_DIRECT", Algorithm::collnetDirect},
        {"COLLNET_CHAIN", Algorithm::collnetChain},
        {"NVLS", Algorithm::nvls},
        {"NVLS_TREE", Algorithm::nvlsTree},
        {"NVLSTREE", Algorithm::nvlsTree},
        {"COLLNETDIRECT", Algorithm::collnetDirect},
        {"PAT", Algorithm::pat},
        {"COLLNETCHAIN", Algorithm::collnetChain},
    };
    return lookUp(kWords, word, Algorithm::unknown);
}

capture::Protocol protocolFromWord(const char* word) noexcept {
    using capture::Protocol;
    static constexpr Word<Protocol> kWords[] = {
        {"LL", Protocol::ll}, {"LL128", Protocol::ll128}, {"SIMPLE", Protocol::simple}};
    return lookUp(kWords, word, Protocol::unknown);
}

capture::DataType dataTypeFromWord(const char* word) noexcept {
    static constexpr Word<capture::DataType> kWords[] = {
        {"ncclInt8", 0},        {"ncclChar", 0},        {"ncclUint8", 1},   {"ncclInt32", 2},   {"ncclInt", 2},
        {"ncclUint32", 3},      {"ncclInt64", 4},       {"ncclUint64", 5},  {"ncclFloat16", 6}, {"ncclHalf", 6},
        {"ncclFloat32", 7},     {"ncclFloat", 7},       {"ncclFloat64", 8}, {"ncclDouble", 8},  {"ncclBfloat16", 9},
        {"ncclFloat8e4m3", 10}, {"ncclFloat8e5m2", 11},
    };
    return lookUp(kWords, word, capture::DataType{255});
}

}  // namespace rankscope::injector
