// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/stacks/helper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>
#include <thread>

namespace rankscope::cli {
namespace {

// 256 threads of 100 frames with long C++ names take some 10 MiB; more is a helper gone wrong.
constexpr size_t kMostText = 32 << 20;

void writeAll(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor, text.data(), text.size());
        if (written <= 0) return;
        text.remove_prefix(static_cast<size_t>(written));
    }
}

// In the forked process: it dies with its parent, leaves no core, and lets the job go first.
void beHelperOf(pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    sigset_t nothing;
    sigemptyset(&nothing);
    sigprocmask(SIG_SETMASK, &nothing, nullptr);
    setpriority(PRIO_PROCESS, 0, 10);
}

// True where it ended with status 0. One that waits for a device or a file server outlives SIGKILL until that answers:
// nobody waits for it longer than this.
bool endedWell(pid_t helper) {
    constexpr auto kLongest = std::chrono::seconds(1);
    constexpr auto kPause = std::chrono::milliseconds(1);
    int status = 0;
    for (const auto end = std::chrono::steady_clock::now() + kLongest; std::chrono::steady_clock::now() < end;) {
        const pid_t ended = waitpid(helper, &status, WNOHANG);
        if (ended == helper) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (ended < 0 && errno != EINTR) return false;
        std::this_thread::sleep_for(kPause);
    }
    return false;
}

}  // namespace

std::string madeInHelper(const std::function<std::string()>& make, const std::function<bool()>& isOver) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
    const pid_t self = getpid();
    const pid_t helper = fork();
    if (helper == 0) {
        beHelperOf(self);
        try {
            writeAll(ends[1], make());
        } catch (...) {  // else it would go on in the parent's code
            _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    if (helper > 0) setpgid(helper, helper);  // whoever comes first
    std::string text;
    bool isWhole = false;
    while (helper > 0 && !isWhole && text.size() < kMostText && !isOver()) {
        // How late the end of the job or of the time may be seen: nobody notices a fifth of a second.
        constexpr int kSliceMs = 200;
        pollfd polled{ends[0], POLLIN, 0};
        if (poll(&polled, 1, kSliceMs) <= 0) continue;
        char block[65536];
        const ssize_t got = ::read(ends[0], block, sizeof block);
        if (got > 0) text.append(block, static_cast<size_t>(got));
        isWhole = got <= 0;
    }
    close(ends[0]);
    if (helper <= 0) return {};
    if (!isWhole) kill(-helper, SIGKILL);  // with py-spy, which it may have started
    return endedWell(helper) && isWhole ? text : std::string();
}

}  // namespace rankscope::cli
