// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/nccl_names.h"

#include <array>
#include <cctype>
#include <utility>

namespace rankscope::costs {
namespace {

using store::Algorithm;
using store::Op;
using store::Protocol;

constexpr std::array<std::pair<const char*, Op>, 9> kOps{{{"allreduce", Op::allReduce},
                                                          {"allgather", Op::allGather},
                                                          {"reducescatter", Op::reduceScatter},
                                                          {"broadcast", Op::broadcast},
                                                          {"reduce", Op::reduce},
                                                          {"alltoall", Op::allToAll},
                                                          {"gather", Op::gather},
                                                          {"scatter", Op::scatter},
                                                          {"sendrecv", Op::send}}};
// The names are spelled as in tuner tables.
constexpr std::array<std::pair<const char*, Algorithm>, 7> kAlgorithmNames{
    {{"tree", Algorithm::tree},
     {"ring", Algorithm::ring},
     {"collnet_direct", Algorithm::collnetDirect},
     {"collnet_chain", Algorithm::collnetChain},
     {"nvls", Algorithm::nvls},
     {"nvls_tree", Algorithm::nvlsTree},
     {"pat", Algorithm::pat}}};
constexpr std::array<std::pair<const char*, Protocol>, 3> kProtocolNames{
    {{"ll", Protocol::ll}, {"ll128", Protocol::ll128}, {"simple", Protocol::simple}}};

std::string folded(std::string_view name) {
    std::string text;
    for (char c : name)
        if (c != '_' && c != '-') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (text.ends_with("perf")) text.resize(text.size() - 4);
    return text;
}

template <typename Table>
auto valueOf(const Table& table, std::string_view name) {
    const std::string wanted = folded(name);
    for (const auto& [text, value] : table)
        if (wanted == folded(text)) return value;
    return decltype(table[0].second){};
}

template <typename Table, typename Value>
std::string nameOf(const Table& table, Value wanted) {
    for (const auto& [text, value] : table)
        if (wanted == value) return text;
    return {};
}

}  // namespace

Op opOfName(std::string_view name) {
    return valueOf(kOps, name);
}
Algorithm algorithmOfName(std::string_view name) {
    return valueOf(kAlgorithmNames, name);
}
Protocol protocolOfName(std::string_view name) {
    return valueOf(kProtocolNames, name);
}
std::string ncclName(Algorithm algorithm) {
    return folded(tunerName(algorithm));
}

std::string tunerName(Algorithm algorithm) {
    return nameOf(kAlgorithmNames, algorithm);
}

std::string ncclName(Protocol protocol) {
    return nameOf(kProtocolNames, protocol);
}

std::string ncclName(Op op) {
    switch (op) {
        case Op::allReduce:
        case Op::allGather:
        case Op::reduceScatter:
        case Op::broadcast:
        case Op::reduce:
            return nameOf(kOps, op);
        default:
            return {};
    }
}

}  // namespace rankscope::costs
