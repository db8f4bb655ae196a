// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/stacks/helper_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace rankscope::cli {
namespace {

using Clock = std::chrono::steady_clock;

bool never() {
    return false;
}

TEST(HelperProcess, WhatItMakesComesWhole) {
    const std::string large(1 << 20, 'x');
    EXPECT_EQ(madeInHelper([&] { return large; }, never), large);
}

TEST(HelperProcess, WhatItThrowsEndsItAndNotItsParentsCode) {
    int back[2];
    ASSERT_EQ(pipe(back), 0);
    const pid_t self = getpid();
    try {
        EXPECT_EQ(madeInHelper([]() -> std::string { throw std::runtime_error("no"); }, never), "");
    } catch (const std::exception&) {
        if (getpid() == self) throw;
        _exit(write(back[1], "x", 1) == 1 ? 0 : 1);  // the helper, in its parent's code
    }
    close(back[1]);
    char byte = 0;
    EXPECT_EQ(read(back[0], &byte, 1), 0) << "it came back here";
    close(back[0]);
    EXPECT_EQ(madeInHelper([]() -> std::string { std::abort(); }, never), "");
}

TEST(HelperProcess, OneThatTakesTooLongIsLeft) {
    const auto begin = Clock::now();
    const auto forever = [] {
        for (;;) pause();
        return std::string();
    };
    EXPECT_EQ(madeInHelper(forever, [&] { return Clock::now() - begin > std::chrono::milliseconds(50); }), "");
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST(HelperProcess, ATerminalsInterruptIsNotForIt) {
    const std::string group = madeInHelper([] { return std::to_string(getpgrp()); }, never);
    ASSERT_FALSE(group.empty());
    EXPECT_NE(group, std::to_string(getpgrp()));
}

}  // namespace
}  // namespace rankscope::cli
