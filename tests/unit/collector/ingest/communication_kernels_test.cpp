// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/communication_kernels.h"

#include <gtest/gtest.h>

namespace rankscope::collector {
namespace {

using store::Op;

TEST(CommunicationKernels, NcclAndRcclTellTheOperation) {
    EXPECT_EQ(opFromKernelName("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)"), Op::allGather);
    EXPECT_EQ(opFromKernelName("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
              Op::reduceScatter);
    EXPECT_EQ(opFromKernelName("ncclDevKernel_Broadcast_RING_LL(x)"), Op::broadcast);
    EXPECT_EQ(opFromKernelName("ncclDevKernel_Reduce_Sum_f32_TREE_LL(x)"), Op::reduce);
    EXPECT_EQ(opFromKernelName("ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymkDevWorkArgs4K)"),
              Op::allReduce);
    EXPECT_EQ(opFromKernelName("ncclDevKernel_SendRecv(x)"), Op::unknown);
    EXPECT_EQ(opFromKernelName("ncclDevKernel_Generic(x)"), Op::unknown);
    EXPECT_EQ(opFromKernelName("reduce_kernel<512>"), Op::unknown);
}

TEST(CommunicationKernels, OtherLibrariesAreKnownByNameReadableOrMangled) {
    for (const char* name : {
             "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long, "
             "unsigned int**, unsigned long, unsigned long)",
             "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(c10::BFloat16**, "
             "unsigned long)",
             "_ZN12_GLOBAL__N_126one_shot_all_reduce_kernelIN3c108BFloat16ELi16EEEvPPT_mmPPjmm",
             "void "
             "flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::trtllm_"
             "allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8>",
             "_ZN12tensorrt_llm7kernels15reduce_fusion45lamport_style_one_shot_all_reduce_norm_kernelIfLi8EEEvNS0_"
             "15AllReduceParamsE",
             "void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<8, __nv_bfloat16, true, "
             "float4>(__nv_bfloat16*)",
             "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals, "
             "vllm::Signal*, __nv_bfloat16*, int, int)",
             "_ZN4vllm26cross_device_reduce_2stageI6__halfLi4EEEvPNS_8RankDataE",
             "void deep_ep::internode::dispatch<false, 4, false, 7, 4>(int4*, float*, long*)",
             "_ZN7deep_ep9intranode7combineI13__nv_bfloat16Li8ELi768EEEvPT_",
             "dpsk::ep::internode::combine(int4*)",
             "_ZN4dpsk2ep9internode7combineEP4int4",
             "ncclSymkDevKernel_AllGather_STMC(ncclSymkDevWorkArgs4K)",
             "userbuffers_fp16_sum_inplace_gpu_rw_ag<4>",
             "exchangeSplitAndOffset(long*, int, int)",
         })
        EXPECT_TRUE(isCommunicationKernelName(name)) << name;
}

TEST(CommunicationKernels, ComputeIsNone) {
    for (const char* name : {
             "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
             "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
             "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nt",
             "void gemm_one_shot_all_reduce_kernel<64, 64>(float*)",
             "flash_fwd_kernel",
             "void all_reduce_free_norm(float*)",
         })
        EXPECT_FALSE(isCommunicationKernelName(name)) << name;
}

TEST(CommunicationKernels, OnlyNcclsOwnAreCallsOfItsInterface) {
    EXPECT_TRUE(isNcclKernelName("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"));
    EXPECT_TRUE(isNcclKernelName("ncclSymDevKernel_AllReduce_AGxLL_R_sum_f32"));
    EXPECT_FALSE(isNcclKernelName("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>"));
    EXPECT_FALSE(isNcclKernelName("void mscclpp::allreduce_allpairs<4>"));
}

}  // namespace
}  // namespace rankscope::collector
