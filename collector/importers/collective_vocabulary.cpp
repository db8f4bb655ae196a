// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/collective_vocabulary.h"

#include <charconv>

namespace rankscope::collector {

namespace {

using store::DataType;
using store::Op;

template <typename Value>
struct Word {
    std::string_view text;
    Value value;
};

// ProcessGroupNCCL's record_param_comms names and annotations, PyTorch 1.8 to 2.9.
constexpr Word<Op> kOps[] = {
    {"allreduce", Op::allReduce},
    {"all_reduce", Op::allReduce},
    {"allreduce_coalesced", Op::allReduce},
    {"allreduce_sparse", Op::allReduce},
    {"all_reduce_sparse", Op::allReduce},
    {"all_reduce_barrier", Op::allReduce},  // NCCL has no barrier: it is an all-reduce of one element
    {"barrier", Op::allReduce},
    {"allgather", Op::allGather},
    {"all_gather", Op::allGather},
    {"_allgather_base", Op::allGather},
    {"_all_gather_base", Op::allGather},
    {"all_gather_into_tensor", Op::allGather},
    {"allgather_into_tensor_coalesced", Op::allGather},
    {"all_gather_into_tensor_coalesced", Op::allGather},
    {"allgather_coalesced", Op::allGather},
    {"reduce_scatter", Op::reduceScatter},
    {"_reduce_scatter_base", Op::reduceScatter},
    {"reduce_scatter_tensor", Op::reduceScatter},
    {"reduce_scatter_tensor_coalesced", Op::reduceScatter},
    {"broadcast", Op::broadcast},
    {"_broadcast_oop", Op::broadcast},
    {"reduce", Op::reduce},
    {"_reduce_oop", Op::reduce},
    {"all_to_all", Op::allToAll},
    {"alltoall", Op::allToAll},
    {"all_to_allv", Op::allToAll},
    {"alltoall_base", Op::allToAll},
    {"all_to_all_single", Op::allToAll},
    // What ends a batch of them, and torchcomms' names, in flight recorders.
    {"ALLREDUCE_coalesced", Op::allReduce},
    {"ALLGATHER_coalesced", Op::allGather},
    {"REDUCE_SCATTER_coalesced", Op::reduceScatter},
    {"all_gather_single", Op::allGather},
    {"all_gather_v", Op::allGather},
    {"reduce_scatter_single", Op::reduceScatter},
    {"reduce_scatter_v", Op::reduceScatter},
    {"all_to_all_v_single", Op::allToAll},
    {"gather", Op::gather},
    {"scatter", Op::scatter},
    {"send", Op::send},
    {"recv", Op::recv},
    {"recvAnySource", Op::recv},
};

constexpr Word<Op> kNcclOps[] = {
    {"AllReduce", Op::allReduce}, {"AllGather", Op::allGather}, {"ReduceScatter", Op::reduceScatter},
    {"Broadcast", Op::broadcast}, {"Reduce", Op::reduce},       {"AlltoAll", Op::allToAll},
    {"Gather", Op::gather},       {"Scatter", Op::scatter},     {"Send", Op::send},
    {"Recv", Op::recv},
};

constexpr Word<DataType> kTypes[] = {
    {"Float", DataType::f32},
    {"float", DataType::f32},
    {"Half", DataType::f16},
    {"c10::Half", DataType::f16},
    {"BFloat16", DataType::bf16},
    {"c10::BFloat16", DataType::bf16},
    {"Double", DataType::f64},
    {"double", DataType::f64},
    {"Long", DataType::i64},
    {"long", DataType::i64},
    {"long int", DataType::i64},
    {"Int", DataType::i32},
    {"int", DataType::i32},
    {"Char", DataType::i8},
    {"signed char", DataType::i8},
    {"Byte", DataType::u8},
    {"unsigned char", DataType::u8},
    {"Bool", DataType::u8},
    {"bool", DataType::u8},
    {"Float8_e4m3fn", DataType::f8e4m3},
    {"c10::Float8_e4m3fn", DataType::f8e4m3},
    {"Float8_e5m2", DataType::f8e5m2},
    {"c10::Float8_e5m2", DataType::f8e5m2},
};

template <typename Value, size_t N>
Value lookUp(const Word<Value> (&words)[N], std::string_view text, Value otherwise) {
    for (const auto& word : words) {
        if (word.text == text) return word.value;
    }
    return otherwise;
}

std::optional<int32_t> integer(std::string_view text) {
    int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

Op opFromTorchName(std::string_view name) {
    return lookUp(kOps, name, Op::unknown);
}

Op opFromNcclName(std::string_view name) {
    return lookUp(kNcclOps, name, Op::unknown);
}

DataType dataTypeFromTorchName(std::string_view name) {
    return lookUp(kTypes, name, DataType::unknown);
}

std::optional<CollectiveAnnotation> parseCollectiveAnnotation(std::string_view name) {
    if (name.substr(0, 5) != "nccl:" && name.substr(0, 5) != "rccl:") return std::nullopt;
    name.remove_prefix(5);
    const size_t blank = name.find(' ');
    CollectiveAnnotation annotation{opFromTorchName(name.substr(0, blank)), std::nullopt};
    if (blank == std::string_view::npos) return annotation;
    // "send 0->1" and "recv 1<-0": the peer stands behind the arrow.
    const size_t arrow = name.find_first_of("-<", blank);
    if (arrow != std::string_view::npos && arrow + 2 < name.size()) annotation.peer = integer(name.substr(arrow + 2));
    return annotation;
}

std::optional<int64_t> collectiveBytes(Op op, DataType type, std::optional<int64_t> inElements,
                                       std::optional<int64_t> outElements, std::optional<int64_t> ranks) {
    const int64_t size = store::elementBytes(type);
    if (size == 0) return std::nullopt;
    const auto bytes = [size](std::optional<int64_t> elements, std::optional<int64_t> times) -> std::optional<int64_t> {
        int64_t product = 0;
        if (!elements || !times || *elements < 0 || *times < 1) return std::nullopt;
        if (__builtin_mul_overflow(*elements, *times, &product) || __builtin_mul_overflow(product, size, &product))
            return std::nullopt;
        return product;
    };
    switch (op) {
        case Op::allGather:
        case Op::gather: {
            const auto chunks = bytes(inElements, ranks);
            return chunks ? chunks : bytes(outElements, 1);
        }
        case Op::reduceScatter:
        case Op::allToAll:
            return bytes(inElements, 1);
        case Op::scatter:
        case Op::recv:
            return bytes(outElements ? outElements : inElements, op == Op::scatter ? ranks : 1);
        default:
            return bytes(inElements ? inElements : outElements, 1);
    }
}

}  // namespace rankscope::collector
