// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/masked_command.h"

#include <gtest/gtest.h>

namespace rankscope::text {
namespace {

using Words = std::vector<std::string>;

TEST(MaskedCommand, ValuesOfOptionsThatSpeakOfASecret) {
    EXPECT_EQ(maskedCommand({"train", "--password", "x", "--token=y", "--wandb_api_key", "z", "-p", "8"}),
              (Words{"train", "--password", "***", "--token=***", "--wandb_api_key", "***", "-p", "8"}));
    EXPECT_EQ(maskedCommand({"--password", "two words", "after"}), (Words{"--password", "***", "after"}));
    EXPECT_EQ(maskedCommand({"--Db.PassWord=x", "--use-token", "--lr", "1"}),
              (Words{"--Db.PassWord=***", "--use-token", "--lr", "1"}));
    EXPECT_EQ(maskedCommand({"--password"}), (Words{"--password"}));
}

TEST(MaskedCommand, WhatOnlySoundsLikeOneStays) {
    const Words words = {"torchrun",
                         "--nproc-per-node",
                         "8",
                         "train.py",
                         "--tokenizer",
                         "gpt2",
                         "--max-tokens",
                         "512",
                         "--key-heads",
                         "4",
                         "--compass",
                         "n",
                         "a@b",
                         "x=1",
                         "--token_dim=8",
                         "--passes",
                         "3",
                         "https://h/p",
                         "",
                         "-",
                         "--"};
    EXPECT_EQ(maskedCommand(words), words);
}

TEST(MaskedCommand, AssignmentsHeadersAndUrls) {
    EXPECT_EQ(maskedCommand({"mpirun", "-x", "HF_TOKEN=abc", "-x", "NCCL_ALGO=Ring"}),
              (Words{"mpirun", "-x", "HF_TOKEN=***", "-x", "NCCL_ALGO=Ring"}));
    EXPECT_EQ(maskedCommand({"-H", "Authorization: Bearer abc", "--header=Authorization: Basic abc", "x"}),
              (Words{"-H", "Authorization: Bearer ***", "--header=Authorization: Basic ***", "x"}));
    EXPECT_EQ(maskedCommand({"--store=s3://id:word@host/a", "tcp://u:p@q@h:1"}),
              (Words{"--store=s3://***@host/a", "tcp://***@h:1"}));
}

TEST(MaskedCommand, LinesForAShell) {
    EXPECT_EQ(maskedCommand({"sh", "-c", "K_KEY=1  train --secret 'x' && echo https://a:b@h"}),
              (Words{"sh", "-c", "K_KEY=***  train --secret *** && echo https://***@h"}));
}

}  // namespace
}  // namespace rankscope::text
