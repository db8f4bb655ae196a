// SPDX-License-Identifier: Apache-2.0
// By what the end of a process is seen, and how long a stand-still lasts before real time counts.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "reference/vgpu/device/end_keys.h"
#include "reference/vgpu/threads/standstill.h"

namespace rankscope::vgpu {
namespace {

struct Pipe {
    Pipe() { EXPECT_EQ(pipe(ends), 0); }
    ~Pipe() {
        close(ends[0]);
        close(ends[1]);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    uint64_t key() const {
        struct stat status;
        EXPECT_EQ(fstat(ends[0], &status), 0);
        return inodeKey(status);
    }
    int ends[2];
};

/// What a child knows of its end in which `change` has closed, or opened, what it does.
std::vector<uint64_t> keysOfChild(const std::function<void()>& change, pid_t& child) {
    const Pipe told;
    child = fork();
    if (child == 0) {
        change();
        const EndKeys keys;
        const auto bytes = static_cast<ssize_t>(keys.count() * sizeof(uint64_t));
        _exit(write(told.ends[1], keys.begin(), static_cast<size_t>(bytes)) == bytes ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    std::vector<uint64_t> keys(kMaxEndKeys + 1);
    const ssize_t bytes = read(told.ends[0], keys.data(), keys.size() * sizeof(uint64_t));
    keys.resize(static_cast<size_t>(bytes) / sizeof(uint64_t));
    return keys;
}

bool has(const std::vector<uint64_t>& keys, uint64_t key) {
    return std::count(keys.begin(), keys.end(), key) == 1;
}

TEST(EndKeys, AChildsEndIsSeenByItsNumberAndByPipesThatItWritesAlone) {
    const Pipe sentinel, queue, heard;
    pid_t child = 0;
    const std::vector<uint64_t> keys = keysOfChild(
        [&] {
            close(sentinel.ends[0]);
            dup(sentinel.ends[1]);  // one pipe still
            close(heard.ends[1]);
        },
        child);
    EXPECT_TRUE(has(keys, childKey(child)));
    EXPECT_TRUE(has(keys, anyChildKey(getpid())));
    EXPECT_TRUE(has(keys, sentinel.key()));
    EXPECT_FALSE(has(keys, queue.key())) << "of which it holds both ends";
    EXPECT_FALSE(has(keys, heard.key())) << "which it only reads";
    EXPECT_FALSE(has(keys, childKey(getpid())));
}

TEST(EndKeys, SocketsAndFilesDoNotTellAnEnd) {
    int sockets[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    pid_t child = 0;
    size_t before = keysOfChild([] {}, child).size();
    const std::vector<uint64_t> keys = keysOfChild(
        [&] {
            close(sockets[0]);
            open("/dev/null", O_WRONLY);
        },
        child);
    EXPECT_EQ(keys.size(), before);
    close(sockets[0]);
    close(sockets[1]);
}

TEST(EndKeys, FurtherPipesAreLeftOutAndTheProcessesNumberIsNot) {
    pid_t child = 0;
    const std::vector<uint64_t> keys = keysOfChild(
        [] {
            for (uint32_t i = 0; i < 2 * kMaxEndKeys; i++) {
                int ends[2];
                if (pipe(ends) != 0) _exit(2);
                close(ends[0]);
            }
        },
        child);
    EXPECT_EQ(keys.size(), size_t{kMaxEndKeys});
    EXPECT_TRUE(has(keys, childKey(child)));
}

TEST(ProcessLives, UntilItsLastThreadIsGone) {
    const Pipe leave;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        close(leave.ends[1]);
        const auto stay = [](void* end) -> void* {
            char byte;
            _exit(read(*static_cast<int*>(end), &byte, 1) == 1 ? 0 : 1);
        };
        int end = leave.ends[0];
        pthread_t other;
        if (pthread_create(&other, nullptr, stay, &end) != 0) _exit(2);
        syscall(SYS_exit, 0);  // the main thread, and not the process
    }
    const uint64_t start = processStartTime(child);
    for (int ms = 0; ms < 10'000 && threadStateOf(child, child) != 'Z'; ms++) usleep(1000);
    ASSERT_EQ(threadStateOf(child, child), 'Z');
    EXPECT_TRUE(processLives(child, start)) << "its pipes are open";
    ASSERT_EQ(write(leave.ends[1], "", 1), 1);
    siginfo_t ended{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(ended.si_status, 0);
    EXPECT_FALSE(processLives(child, start)) << "though nobody has taken its status";
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

using threads::Standstill;

TEST(Standstill, LastsOnceNothingHasMovedForASecond) {
    Standstill still;
    for (int64_t ms = 5000; ms < 5000 + Standstill::kLastingMs; ms += 100) EXPECT_FALSE(still.lasts(true, 7, ms)) << ms;
    EXPECT_TRUE(still.lasts(true, 7, 5000 + Standstill::kLastingMs));
    EXPECT_TRUE(still.lasts(true, 7, 5010 + Standstill::kLastingMs)) << "many short waits wait for it once";
}

TEST(Standstill, AMoveInBetweenBeginsItAnew) {
    Standstill still;
    int64_t ms = 0;
    for (; ms < 900; ms += 100) EXPECT_FALSE(still.lasts(true, 7, ms));
    for (const int64_t end = ms + Standstill::kLastingMs; ms < end; ms += 100)
        EXPECT_FALSE(still.lasts(true, 8, ms)) << ms;
    EXPECT_TRUE(still.lasts(true, 8, ms));
}

TEST(Standstill, WhatRunsDoesNotStandStillThoughNothingIsCounted) {
    Standstill still;
    EXPECT_FALSE(still.lasts(false, 7, 0));
    EXPECT_FALSE(still.lasts(true, 7, 5000));  // since when nobody knows
    int64_t ms = 5000;
    for (; ms < 5000 + Standstill::kLastingMs; ms += 100) EXPECT_FALSE(still.lasts(true, 7, ms)) << ms;
    EXPECT_FALSE(still.lasts(false, 7, ms));
    EXPECT_FALSE(still.lasts(true, 7, ms + 100));
}

TEST(Standstill, TimeInWhichNobodyCouldAskDoesNotCount) {
    Standstill still;
    EXPECT_FALSE(still.lasts(true, 7, 0));
    int64_t ms = 0;
    for (int64_t counted = Standstill::kLongestStretchMs; counted < Standstill::kLastingMs;
         counted += Standstill::kLongestStretchMs)
        EXPECT_FALSE(still.lasts(true, 7, ms += 60'000)) << "the machine was busy with others";
    EXPECT_TRUE(still.lasts(true, 7, ms + 60'000));
}

}  // namespace
}  // namespace rankscope::vgpu
