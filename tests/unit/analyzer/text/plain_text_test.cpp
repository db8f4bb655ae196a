// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/plain_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

namespace rankscope::text {
namespace {

// A shell must read back what was meant.
std::string readByShell(const std::string& text) {
    // A here-document would be read by the shell, too: the word goes in as a script's own text.
    FILE* script = std::tmpfile();
    std::fprintf(script, "printf %%s %s", text.c_str());
    std::fflush(script);
    const std::string command =
        "sh /proc/self/fd/0 < /proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fileno(script));
    FILE* output = popen(command.c_str(), "r");
    std::string read;
    for (int c; (c = std::fgetc(output)) != EOF;) read += static_cast<char>(c);
    pclose(output);
    std::fclose(script);
    return read;
}

TEST(ShellWord, PlainNamesStayAsTheyAre) {
    for (const char* plain : {"run", "runs/2024-01-01_a.db", "a,b:c+d@e%f", "übung"})
        EXPECT_EQ(shellWord(plain), plain);
}

TEST(ShellWord, AnythingElseIsReadBackUnchanged) {
    for (const char* word : {"a b", "it's", "''",  "$HOME", "`id`", "$(id)", "a\"b",  "a\\b", "*",   "~",
                             "a;b", "a&b",  "a|b", "a>b",   "#a",   "!a",    "{a,b}", "a\nb", "(a)", "a=b"})
        EXPECT_EQ(readByShell(shellWord(word)), word);
    EXPECT_EQ(shellWord(""), "''");
    EXPECT_EQ(shellQuoted("plain"), "'plain'");
}

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
