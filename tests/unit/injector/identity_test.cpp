// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "injector/process_identity.h"
#include "injector/recordable_variables.h"
#include "tests/unit/injector/table_environment.h"

using namespace rankscope::injector;

namespace {

ProcessIdentity identityOf(std::map<std::string, std::string> environment) {
    test::g_environment = std::move(environment);
    return readIdentity(test::fromTable);
}

bool recordable(const char* name) {
    return isRecordableVariable(name, std::strlen(name));
}

}  // namespace

TEST(ProcessIdentity, TorchrunWithARestart) {
    const auto identity = identityOf({{"RANK", "5"},
                                      {"LOCAL_RANK", "1"},
                                      {"WORLD_SIZE", "8"},
                                      {"TORCHELASTIC_RUN_ID", "job7"},
                                      {"TORCHELASTIC_RESTART_COUNT", "2"}});
    EXPECT_EQ(identity.rank, 5);
    EXPECT_EQ(identity.localRank, 1);
    EXPECT_EQ(identity.worldSize, 8);
    EXPECT_EQ(identity.attempt, 2);
    EXPECT_STREQ(identity.source, "torchrun");
    EXPECT_STREQ(identity.jobId, "job7");
}

TEST(ProcessIdentity, OpenMpiBeforeTheSlurmItRunsUnder) {
    const auto identity = identityOf({{"OMPI_COMM_WORLD_RANK", "3"},
                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                      {"OMPI_COMM_WORLD_SIZE", "4"},
                                      {"SLURM_PROCID", "0"}});
    EXPECT_EQ(identity.rank, 3);
    EXPECT_STREQ(identity.source, "openmpi");
}

TEST(ProcessIdentity, TorchrunInsideAnMpiLauncherIsTorchrun) {
    EXPECT_STREQ(identityOf({{"RANK", "9"}, {"OMPI_COMM_WORLD_RANK", "1"}}).source, "torchrun");
}

TEST(ProcessIdentity, SlurmAndPmi) {
    EXPECT_EQ(identityOf({{"SLURM_PROCID", "11"}, {"SLURM_NTASKS", "16"}}).worldSize, 16);
    EXPECT_STREQ(identityOf({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}).source, "pmi");
    EXPECT_STREQ(identityOf({{"PMIX_RANK", "2"}}).source, "pmix");
}

TEST(ProcessIdentity, NoLauncherOrNonsenseIsUnknown) {
    for (const auto& environment : {std::map<std::string, std::string>{}, {{"RANK", "first"}}, {{"RANK", "-1"}}}) {
        const auto identity = identityOf(environment);
        EXPECT_EQ(identity.rank, -1);
        EXPECT_STREQ(identity.source, "none");
    }
}

TEST(RecordableVariables, NcclCudaTorchAndRankVariablesOnly) {
    for (const char* name : {"NCCL_DEBUG", "CUDA_VISIBLE_DEVICES", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "RANK",
                             "MASTER_ADDR", "RANKSCOPE_LINKS", "SLURM_PROCID"})
        EXPECT_TRUE(recordable(name)) << name;
    for (const char* name : {"HOME", "PATH", "AWS_REGION", "RANKED", "MY_NCCL_DEBUG", "LD_PRELOAD"})
        EXPECT_FALSE(recordable(name)) << name;
}

TEST(RecordableVariables, NoNameThatOnlyBeginsLikeOne) {
    for (const char* name : {"NCCL_AUTH_TOKEN", "NCCL_SOCKET_PASS", "NCCL_PRIVATE", "NCCL_DEBUG_", "NCCL_ALG",
                             "CUDA_API_KEY", "CUDA_X_PWD", "TORCH_secret", "TORCH_URL", "PYTORCH_DB_DSN", "PMI_BEARER",
                             "TORCHELASTIC_X", "SLURM_JWT_TOKEN", ""})
        EXPECT_FALSE(recordable(name)) << name;
}

TEST(RecordableVariables, ValuesLoseTheCredentialsOfUrls) {
    const std::map<std::string, std::string> masked = {
        {"", ""},
        {"tree", "tree"},
        {"https://host/path?a=b@c", "https://host/path?a=b@c"},
        {"https://user:word@host/path", "https://***@host/path"},
        {"a=socks5://me@x:1,b=tcp://u:p@q@y", "a=socks5://***@x:1,b=tcp://***@y"},
        {"://@://@", "://***@://***@"},
        {"mail me@host", "mail me@host"}};
    for (const auto& [value, recorded] : masked) EXPECT_STREQ(recordedValue(value.c_str()).c_str(), recorded.c_str());
    EXPECT_EQ(recordedValue(std::string(100'000, 'x').c_str()).size(), 8191u);
}
