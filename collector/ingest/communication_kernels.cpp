// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/communication_kernels.h"

namespace rankscope::collector {

namespace {

using store::Op;

/// A part of a kernel's name that only one library uses, and where it stands. To teach Rankscope another library, add a
/// line.
struct Pattern {
    std::string_view part;
    std::string_view source;  // project, file, and the version it was read in where that is known
};
constexpr Pattern kPatterns[] = {
    {"nccl",
     "NCCL: ncclKernel_ up to 2.18, ncclDevKernel_ since 2.19, ncclSymDevKernel_, ncclSymkDevKernel_ since 2.27; RCCL, "
     "too"},
    {"NCCL", "wrappers of frameworks"},
    {"rccl", "RCCL of ROCm 5: rcclGenericKernel"},
    {"mscclKernel", "MSCCL, as a part of RCCL"},
    {"mscclpp", "MSCCL++: its namespace"},
    {"nvshmem", "NVSHMEM 3: kernels of its host API"},
    {"rocshmem", "rocSHMEM: the same"},
    {"exchangeSplitAndOffset", "PyTorch 2.8, symm_mem/nvshmem_extension.cu: first kernel of all_to_all_vdev"},
    {"allToAllV", "the same file: second kernel"},
    {"one_shot_all_reduce",
     "PyTorch 2.5 and newer, symm_mem/CUDASymmetricMemoryOps.cu; TensorRT-LLM, customAllReduceKernels.cu (.._norm)"},
    {"two_shot_all_reduce", "PyTorch, the same file: two_shot_all_reduce_kernel, .._inplace"},
    {"multimem_",
     "PyTorch, the same file: multimem_all_reduce_kernel, multimem_one_shot_.., multimem_all_gather_kernel"},
    {"oneShotAllReduce", "TensorRT-LLM, customAllReduceKernels.cu; PyTorch 2.2 to 2.4, intra_node_comm.cu"},
    {"twoShotAllReduce", "the same two files"},
    {"TwoShotAllReduce", "TensorRT-LLM, lowPrecisionAllReduceKernels.cu"},
    {"allreduce_fusion",
     "TensorRT-LLM, allReduceFusionKernels.cu, moeAllReduceFusionKernels.cu; FlashInfer, trtllm_allreduce_fusion.cuh"},
    {"oneshotAllreduce", "FlashInfer 0.6.12, trtllm_mnnvl_allreduce.cuh: oneshotAllreduceFusionKernel"},
    {"twoshotAllreduce", "the same file: twoshotAllreduceKernel"},
    {"moeAllToAllKernel", "TensorRT-LLM, moeCommKernels.cu and fusedMoeCommKernels.cu; FlashInfer"},
    {"userbuffers_",
     "Transformer Engine 1.x, userbuffers.cu; TensorRT-LLM: userbuffers_fp16_sum_inplace_gpu_rw, "
     "kuserbuffers_pushsend"},
    {"cross_device_",
     "vLLM, custom_all_reduce.cuh; SGLang, AITER: cross_device_reduce_1stage, cross_device_all_gather"},
    {"allreduce_prototype_", "vLLM on ROCm, quickreduce: allreduce_prototype_twoshot"},
    {"deep_ep", "DeepEP 1: dispatch and combine in deep_ep::internode and deep_ep::intranode"},
    {"dpsk::ep::", "DeepEP before it was published"},
    {"4dpsk2ep", "the same, mangled"},
};

/// Fused kernels that spend their time on a product: its communication is part of them.
constexpr std::string_view kProducts[] = {"gemm", "Gemm", "GEMM", "matmul"};

bool has(std::string_view name, std::string_view part) noexcept {
    return name.find(part) != std::string_view::npos;
}

}  // namespace

bool isNcclKernelName(std::string_view name) noexcept {
    for (const std::string_view prefix :
         {"ncclKernel", "ncclDevKernel", "ncclSym", "mscclKernel", "rcclKernel", "rcclGenericKernel"}) {
        if (has(name, prefix)) return true;
    }
    return false;
}

bool isCommunicationKernelName(std::string_view name) noexcept {
    if (isNcclKernelName(name)) return true;
    for (const std::string_view product : kProducts) {
        if (has(name, product)) return false;
    }
    for (const Pattern& pattern : kPatterns) {
        if (has(name, pattern.part)) return true;
    }
    return false;
}

Op opFromKernelName(std::string_view name) noexcept {
    struct Word {
        std::string_view text;
        Op op;
    };
    constexpr Word kWords[] = {{"AllReduce", Op::allReduce},
                               {"AllGather", Op::allGather},
                               {"ReduceScatter", Op::reduceScatter},
                               {"Broadcast", Op::broadcast},
                               {"Reduce", Op::reduce}};
    for (const std::string_view prefix :
         {"ncclKernel_", "ncclDevKernel_", "mscclKernel_", "ncclSymkDevKernel_", "ncclSymDevKernel_"}) {
        const size_t at = name.find(prefix);
        if (at == std::string_view::npos) continue;
        const std::string_view rest = name.substr(at + prefix.size());
        for (const Word& word : kWords) {
            if (word.text == rest.substr(0, rest.find_first_of("_(<"))) return word.op;
        }
        return Op::unknown;
    }
    return Op::unknown;
}

}  // namespace rankscope::collector
