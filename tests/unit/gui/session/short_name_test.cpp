// SPDX-License-Identifier: Apache-2.0
#include "gui/session/short_name.h"

#include <gtest/gtest.h>

namespace rankscope::gui {
namespace {

using Names = std::vector<std::string>;

std::string shortName(const std::string& name) {
    return shortNames(Names{name}).front();
}

TEST(ShortName, LeavesOutReturnTypeNamespacesAndParameters) {
    EXPECT_EQ(shortName("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
                        "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>)"),
              "vectorized_elementwise_kernel");
    EXPECT_EQ(shortName("rankscope::reference::layerNormForward<__nv_bfloat16>"), "layerNormForward");
    EXPECT_EQ(shortName("void "
                        "cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm>(cutlass_80_wmma_tensorop_bf16_"
                        "s161616gemm::Params)"),
              "Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm>");
    EXPECT_EQ(shortName("(anonymous namespace)::elementwise_kernel_with_index<int>"), "elementwise_kernel_with_index");
    EXPECT_EQ(
        shortName(
            "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false>(float*, float const*)"),
        "softmax_warp_forward");
    EXPECT_EQ(shortName("std::enable_if<true, void>::type flash::compute<(int)4>(flash::Params)"), "compute<(int)4>");
    EXPECT_EQ(shortName("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
              "ncclDevKernel_AllGather_RING_LL");
}

TEST(ShortName, OtherNamesStay) {
    for (const char* name : {"ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn",
                             "Memcpy HtoD (Pinned -> Device)", "a > b", "forward pass 3", "", "<", "x<", "operator<",
                             "f(", "::", "a::", "\u05e9\u05dc\u05d5\u05dd", "triton_poi_fused_add_0d1d2d"})
        EXPECT_EQ(shortName(name), name);
    const std::string deep(100'000, '<');
    EXPECT_EQ(shortName(deep), deep);
}

TEST(ShortName, DifferentNamesNeverLookTheSame) {
    const Names names{"void k::vec<4, a::Fill<float>, std::array<char*, 1> >(int)",
                      "void k::vec<4, a::Fill<double>, std::array<char*, 1> >(int)",
                      "other::gemm<1>",
                      "gemm<1>",
                      "gemm<2>",
                      "void k::vec<4, a::Fill<float>, std::array<char*, 1> >(int)"};
    EXPECT_EQ(shortNames(names), (Names{"vec<\u2026, Fill<float>>", "vec<\u2026, Fill<double>>", "other::gemm<1>",
                                        "gemm<1>", "gemm<2>", "vec<\u2026, Fill<float>>"}));
    EXPECT_EQ(shortNames(Names{"n::vectorized_elementwise<4, n::Fill<float>, n::array<1> >(int)",
                               "n::vectorized_elementwise<4, n::Add<float>, n::array<1> >(int)"}),
              (Names{"vectorized_elementwise<\u2026, Fill>", "vectorized_elementwise<\u2026, Add>"}));
    EXPECT_EQ(shortNames(Names{"f(int)", "f(float)"}), (Names{"f(int)", "f(float)"}));
    EXPECT_EQ(shortNames(Names{"a::f", "f"}), (Names{"a::f", "f"}));
    EXPECT_EQ(shortNames(Names{"f<x<1> >", "f<x<1>, x<2> >", "f<x<2> >"}), (Names{"f<x<1>>", "f<x, x>", "f<x<2>>"}));
}

}  // namespace
}  // namespace rankscope::gui
