// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/text/plain_text.h"

namespace rankscope::text {
namespace {

TEST(KernelName, DropsReturnTypeAndParametersOfAMangledName) {
    EXPECT_EQ(readableKernelName("_Z4gemm10KernelCostPf"), "gemm");
    EXPECT_EQ(readableKernelName("_ZN2at6native4copyIfLi4EEEvPT_i"), "at::native::copy<float, 4>");
    EXPECT_EQ(readableKernelName("_ZN12_GLOBAL__N_15scaleEPf"), "(anonymous namespace)::scale");
}

TEST(KernelName, LeavesOtherNamesAlone) {
    EXPECT_EQ(readableKernelName("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"),
              "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)");
    EXPECT_EQ(readableKernelName("_Znot_a_name"), "_Znot_a_name");
    EXPECT_EQ(readableKernelName(""), "");
}

TEST(KernelName, CutsWhatNobodyReads) {
    const std::string name = readableKernelName(std::string(10'000, 'k'));
    EXPECT_EQ(name.size(), 80u);
    EXPECT_TRUE(name.ends_with("..."));
}

}  // namespace
}  // namespace rankscope::text
