// SPDX-License-Identifier: Apache-2.0
// A process reads the stacks of its own child, which stands in a function that it knows.
#include "analyzer/cli/stacks/process_snapshot.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include "analyzer/cli/stacks/native_frames.h"
#include "analyzer/cli/stacks/python_frames.h"

extern "C" {
// Waits for the pipe's other end, which never writes.
__attribute__((noinline, visibility("default"))) int standInAHole(int descriptor) {
    char byte = 0;
    const auto got = read(descriptor, &byte, 1);
    return static_cast<int>(got) + byte;
}
}

namespace rankscope::cli {
namespace {

/// A child whose main thread, and with `threads` others, reads from a pipe.
class StandingChild {
  public:
    explicit StandingChild(int threads = 0) {
        int ready[2];
        EXPECT_EQ(pipe(m_hole), 0);
        EXPECT_EQ(pipe(ready), 0);
        m_pid = fork();
        if (m_pid == 0) {
            for (int i = 0; i < threads; ++i) std::thread([this] { standInAHole(m_hole[0]); }).detach();
            EXPECT_EQ(write(ready[1], "x", 1), 1);
            _exit(standInAHole(m_hole[0]));
        }
        char byte = 0;
        EXPECT_EQ(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        close(ready[1]);
    }
    ~StandingChild() {
        kill(m_pid, SIGKILL);
        waitpid(m_pid, nullptr, 0);
        close(m_hole[0]);
        close(m_hole[1]);
    }

    pid_t pid() const { return m_pid; }

    /// One thread that reads gets a byte and ends; the main thread's end is the process's.
    int status() {
        EXPECT_EQ(write(m_hole[1], "\x05", 1), 1);
        int status = 0;
        EXPECT_EQ(waitpid(m_pid, &status, 0), m_pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

  private:
    int m_hole[2] = {-1, -1};
    pid_t m_pid = 0;
};

bool mentions(const std::vector<std::string>& frames, const char* function) {
    return std::ranges::any_of(frames, [&](const std::string& frame) { return frame.starts_with(function); });
}

/// Reads until the thread has come to where it waits.
std::vector<std::vector<std::string>> framesOf(pid_t pid, ProcessSnapshot& snapshot) {
    std::vector<std::vector<std::string>> frames;
    for (int attempt = 0; attempt < 200; ++attempt) {
        snapshot = takeSnapshot(pid);
        frames = nativeFrames(snapshot);
        if (std::ranges::all_of(frames, [](const auto& one) { return mentions(one, "standInAHole+0x"); })) break;
        std::this_thread::yield();
    }
    return frames;
}

TEST(ProcessSnapshot, AThreadsFramesLeadFromTheSystemCallToItsBegin) {
    if (!canUnwind()) GTEST_SKIP() << "built without libdw";
    StandingChild child(3);
    ProcessSnapshot snapshot;
    const auto frames = framesOf(child.pid(), snapshot);
    ASSERT_TRUE(snapshot.refused.empty()) << snapshot.refused;
    ASSERT_EQ(snapshot.threads.size(), 4u);
    EXPECT_EQ(snapshot.threads[0].tid, child.pid());
    EXPECT_EQ(snapshot.unread, 0);
    for (size_t i = 0; i < frames.size(); ++i) {
        EXPECT_TRUE(mentions(frames[i], "standInAHole+0x")) << i;
        EXPECT_GT(frames[i].size(), 2u);
        EXPECT_NE(frames[i].front().find("read"), std::string::npos) << frames[i].front();
    }
    EXPECT_TRUE(mentions(frames[0], "main+0x")) << "the stack's end is there";
}

TEST(ProcessSnapshot, TheProcessGoesOnAsIfNobodyHadLooked) {
    StandingChild child;
    for (int i = 0; i < 20; ++i) takeSnapshot(child.pid());
    EXPECT_EQ(waitpid(child.pid(), nullptr, WNOHANG), 0);
    EXPECT_EQ(child.status(), 1 + 5);
}

/// Reads until the thread has stopped in time: on a busy machine it may not come to run.
ProcessSnapshot untilRead(pid_t pid) {
    ProcessSnapshot snapshot = takeSnapshot(pid);
    for (int attempt = 0; attempt < 50 && snapshot.unread > 0; ++attempt) snapshot = takeSnapshot(pid);
    return snapshot;
}

/// The kernel wakes a stopped thread that is let go of, so that it stops again by itself: it runs for a moment then.
bool comesToState(pid_t pid, char state) {
    for (int attempt = 0; attempt < 5000; ++attempt) {
        std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
        std::string text;
        std::getline(stat, text);
        if (const size_t name = text.rfind(')'); name != std::string::npos && text.at(name + 2) == state) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
}

TEST(ProcessSnapshot, AStoppedProcessStaysStoppedAndAnEndedOneGivesNothing) {
    StandingChild child;
    kill(child.pid(), SIGSTOP);
    int status = 0;
    ASSERT_EQ(waitpid(child.pid(), &status, WUNTRACED), child.pid());
    const ProcessSnapshot stopped = untilRead(child.pid());
    EXPECT_FALSE(stopped.threads.at(0).registers.empty());
    EXPECT_TRUE(comesToState(child.pid(), 'T'));
    untilRead(child.pid());
    EXPECT_TRUE(comesToState(child.pid(), 'T'));
    kill(child.pid(), SIGCONT);
    kill(child.pid(), SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
    for (const ThreadSnapshot& thread : takeSnapshot(child.pid()).threads) EXPECT_TRUE(thread.registers.empty());
    ASSERT_EQ(waitpid(child.pid(), &status, 0), child.pid()) << "its end is still there to be read";
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(ProcessSnapshot, WhatMayNotBeReadSaysWhyAndNamesItsThreads) {
    StandingChild child;
    // Another tracer has it already, as a debugger would: the kernel refuses a second one, as it refuses without the
    // permission.
    ASSERT_EQ(ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr), 0) << errno;
    const ProcessSnapshot snapshot = takeSnapshot(child.pid());
    EXPECT_NE(snapshot.refused.find("ptrace: "), std::string::npos) << snapshot.refused;
    EXPECT_EQ(snapshot.threads.size(), 1u);
    EXPECT_EQ(nativeFrames(snapshot).at(0).size(), 0u);
}

TEST(ProcessSnapshot, AThreadThatAloneMayNotBeReadHidesNoOther) {
    StandingChild child(2);
    ASSERT_EQ(ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr), 0) << errno;  // the main thread, by this one
    const ProcessSnapshot snapshot = untilRead(child.pid());
    EXPECT_EQ(snapshot.refused, "");
    EXPECT_EQ(snapshot.untraceable, 1);
    ASSERT_EQ(snapshot.threads.size(), 3u);
    EXPECT_TRUE(snapshot.threads[0].registers.empty());
    EXPECT_FALSE(snapshot.threads[1].registers.empty());
    EXPECT_FALSE(snapshot.threads[2].registers.empty());
}

TEST(ProcessSnapshot, ThreadsBeyondThoseThatAreReadAreCounted) {
    StandingChild child(300);
    const ProcessSnapshot snapshot = takeSnapshot(child.pid());
    EXPECT_EQ(snapshot.threads.size() + static_cast<size_t>(snapshot.beyond), 301u);
    EXPECT_EQ(snapshot.beyond, 301 - 256);
}

TEST(PySpy, ItsJsonBecomesFramesAndAnythingElseIsRefused) {
    const auto threads = parsePySpy(R"([{"pid":7,"thread_id":1,"thread_name":"MainThread","os_thread_id":7,"frames":[
        {"name":"__next__","filename":"/x/dataloader.py","short_filename":"dataloader.py","line":633},
        {"name":"<module>","filename":"/x/train.py","short_filename":null,"line":4}]},
        {"thread_name":null,"os_thread_id":null,"frames":[]}])");
    ASSERT_EQ(threads.size(), 2u);
    EXPECT_EQ(threads[0].tid, 7);
    EXPECT_EQ(threads[0].frames,
              (std::vector<std::string>{"__next__ (dataloader.py:633)", "<module> (/x/train.py:4)"}));
    for (const char* other : {"", "{", "7", "[{}]", R"([{"frames":[{"name":1}]}])"})
        EXPECT_THROW(parsePySpy(other), std::exception) << other;
}

TEST(PySpy, PythonIsToldByWhatIsMapped) {
    EXPECT_TRUE(runsPython("5-6 r-xp 0 0 1 /usr/lib/libpython3.11.so.1.0\n"));
    EXPECT_TRUE(runsPython("5-6 r-xp 0 0 1 /usr/bin/python3.11\n"));
    EXPECT_FALSE(runsPython("5-6 r-xp 0 0 1 /usr/bin/train\n"));
}

}  // namespace
}  // namespace rankscope::cli
