// SPDX-License-Identifier: Apache-2.0
// The recording of a process is one per process and begins once. A test that records therefore runs in a child of the
// test program.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace rankscope::injector::test {

/// Runs the case in a forked child; its failures are printed there and fail the test here.
template <typename Case>
void runInOwnProcess() {
    std::fflush(nullptr);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        {
            Case theCase;
            if constexpr (requires { theCase.setUp(); }) theCase.setUp();
            if (!testing::Test::HasFatalFailure()) theCase.run();
        }
        std::fflush(nullptr);
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "the case in its own process failed, wait status " << status;
}

}  // namespace rankscope::injector::test

/// As TEST_F, with a plain class, whose setUp() runs in the child when it has one.
#define OWN_PROCESS_TEST(Fixture, name)                                        \
    struct Fixture##_##name##_Case : Fixture {                                 \
        void run();                                                            \
    };                                                                         \
    TEST(Fixture, name) {                                                      \
        rankscope::injector::test::runInOwnProcess<Fixture##_##name##_Case>(); \
    }                                                                          \
    void Fixture##_##name##_Case::run()
