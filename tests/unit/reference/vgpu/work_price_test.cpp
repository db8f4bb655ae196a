// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/work_price.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace rankscope::vgpu {
namespace {

/// What is wrong with a table.
std::string complaint(const std::string& table) {
    try {
        PriceTable::parse(table);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

TEST(VgpuWorkPrice, workTakesTheLongerOfArithmeticAndTraffic) {
    const Cluster cluster;  // 300 TFLOP/s, 2000 GB/s
    EXPECT_DOUBLE_EQ(workNs(cluster, {3e9, 1e3, RANKSCOPE_ELEMENT_BF16}), 10'000);
    EXPECT_DOUBLE_EQ(workNs(cluster, {3e9, 1e8, RANKSCOPE_ELEMENT_BF16}), 50'000);
    EXPECT_DOUBLE_EQ(workNs(cluster, {3e9, 0, RANKSCOPE_ELEMENT_TF32}), 20'000);
    EXPECT_DOUBLE_EQ(workNs(cluster, {3e9, 0, RANKSCOPE_ELEMENT_FP32}), 150'000);
}

TEST(VgpuPriceTable, aMeasuredPointIsScaledToTheWork) {
    const Cluster cluster;
    const PriceTable table = PriceTable::parse(
        "# measured somewhere\n"
        "operator,aten::add,bf16,0,2e7,15\n"
        "operator, aten::add ,bf16, 0, 2e9, 1200\n\n"
        "operator,aten::add,fp32,0,2e7,99\n");
    EXPECT_DOUBLE_EQ(table.operatorNs(cluster, "aten::add", {0, 2e7, RANKSCOPE_ELEMENT_BF16}), 15'000);
    EXPECT_DOUBLE_EQ(table.operatorNs(cluster, "aten::add", {0, 4e7, RANKSCOPE_ELEMENT_BF16}), 30'000);
    EXPECT_DOUBLE_EQ(table.operatorNs(cluster, "aten::add", {0, 1e9, RANKSCOPE_ELEMENT_BF16}), 600'000);
    EXPECT_LT(table.operatorNs(cluster, "aten::add", {0, 2e7, RANKSCOPE_ELEMENT_FP64}), 0);
    EXPECT_LT(table.operatorNs(cluster, "aten::mul", {0, 2e7, RANKSCOPE_ELEMENT_BF16}), 0);
}

TEST(VgpuPriceTable, kernelsAreFoundByAPartOfTheirNameAndScaledByTheirBlocks) {
    const PriceTable table = PriceTable::parse("kernel,adam_kernel,100,50\n");
    EXPECT_DOUBLE_EQ(table.kernelNs("_Z11adam_kernelPf", 100), 50'000);
    EXPECT_DOUBLE_EQ(table.kernelNs("_Z11adam_kernelPf", 350), 50'000 * 10.0 / 5);  // 3 us + 20 ns a block
    EXPECT_LT(table.kernelNs("_Z4sgdPf", 100), 0);
}

TEST(VgpuPriceTable, aBadTableIsRefusedByLineAndCause) {
    EXPECT_EQ(complaint("# nothing\n"), "holds no prices");
    EXPECT_EQ(complaint("kernel,a,1,2\nop,a,1,2\n"), "line 2: begins with 'op': use operator or kernel");
    EXPECT_EQ(complaint("operator,a,bf16,1,2\n"),
              "line 1: an operator has 6 fields: operator,NAME,ELEMENT,FLOP,BYTES,US");
    EXPECT_EQ(complaint("operator,a,half,1,2,3\n"),
              "line 1: element is 'half': use bf16, fp16, fp8, int8, tf32, fp32 or fp64");
    EXPECT_EQ(complaint("kernel,a,-1,2\n"), "line 1: BLOCKS is '-1', not a number of 0 or more");
    EXPECT_EQ(complaint("kernel,a,1,fast\n"), "line 1: US is 'fast', not a number of 0 or more");
    EXPECT_EQ(complaint("kernel,,1,2\n"), "line 1: the name is empty");
    EXPECT_EQ(complaint("kernel,a,1,0\n"), "line 1: US is 0: nothing takes no time");
}

TEST(VgpuPriceTable, aFileThatIsNotThereIsNamed) {
    try {
        PriceTable::read("/nowhere/prices.csv");
        FAIL();
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "/nowhere/prices.csv: cannot be read");
    }
}

}  // namespace
}  // namespace rankscope::vgpu
