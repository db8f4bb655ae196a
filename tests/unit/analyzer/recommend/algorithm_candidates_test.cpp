// SPDX-License-Identifier: Apache-2.0
// Who set a variable, and what takes it back there.
#include "analyzer/recommend/algorithm_candidates.h"

#include <gtest/gtest.h>

namespace rankscope::recommend {
namespace {

facts::TraceFacts facts(std::map<std::string, std::string> meta) {
    facts::TraceFacts facts;
    facts.meta = std::move(meta);
    return facts;
}

const facts::TraceFacts kShell =
    facts({{"env.NCCL_PROTO", "LL"}, {"start_env", "recorded"}, {"start_env.NCCL_PROTO", "LL"}});
const facts::TraceFacts kOption = facts({{"env.NCCL_PROTO", "LL"},
                                         {"start_env", "recorded"},
                                         {"start_env.NCCL_PROTO", "Simple"},
                                         {"run_env.NCCL_PROTO", "LL"}});
const facts::TraceFacts kJob = facts({{"env.NCCL_PROTO", "LL"}, {"start_env", "recorded"}});
const facts::TraceFacts kOverridden =
    facts({{"env.NCCL_PROTO", "LL"}, {"start_env", "recorded"}, {"start_env.NCCL_PROTO", "Simple"}});
const facts::TraceFacts kUnknown = facts({{"env.NCCL_PROTO", "LL"}});
const costs::NcclVersion kNew{2, 28, 9}, kOld{2, 23, 4};

TEST(SettingOrigin, IsWhereTheJobsValueWasSeen) {
    EXPECT_EQ(originOf(kShell, "NCCL_PROTO"), SettingOrigin::shell);
    EXPECT_EQ(originOf(kOption, "NCCL_PROTO"), SettingOrigin::option);
    EXPECT_EQ(originOf(kJob, "NCCL_PROTO"), SettingOrigin::job);
    EXPECT_EQ(originOf(kOverridden, "NCCL_PROTO"), SettingOrigin::job) << "the shell's was another value";
    EXPECT_EQ(originOf(kUnknown, "NCCL_PROTO"), SettingOrigin::unknown);
}

TEST(SettingOrigin, OnlyWhatTheShellSetIsUnset) {
    EXPECT_EQ(givenBack(kShell, "NCCL_PROTO", kNew), std::nullopt);
    EXPECT_EQ(givenBack(kJob, "NCCL_PROTO", kNew), "");
    EXPECT_EQ(givenBack(kUnknown, "NCCL_PROTO", kNew), "");
    // Before 2.24 an empty list allowed nothing at all.
    EXPECT_EQ(givenBack(kJob, "NCCL_PROTO", kOld), std::nullopt);
    EXPECT_EQ(givenBack(kJob, "NCCL_PROTO", std::nullopt), std::nullopt);
}

TEST(SettingOrigin, SaysWhereToChangeIt) {
    EXPECT_EQ(originText(kShell, "NCCL_PROTO", std::nullopt), "NCCL_PROTO=LL is in the environment of `rankscope run`");
    EXPECT_NE(originText(kOption, "NCCL_PROTO", std::nullopt).find("--env"), std::string::npos);
    EXPECT_NE(originText(kJob, "NCCL_PROTO", std::nullopt).find("take it out there"), std::string::npos);
    EXPECT_NE(originText(kJob, "NCCL_PROTO", "").find("empty is as good as unset"), std::string::npos);
    EXPECT_EQ(originText(kJob, "NCCL_PROTO", "allreduce:simple").find("empty"), std::string::npos);
    EXPECT_NE(originText(kUnknown, "NCCL_PROTO", "").find("not recorded"), std::string::npos);
}

}  // namespace
}  // namespace rankscope::recommend
