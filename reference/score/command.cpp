// SPDX-License-Identifier: Apache-2.0
#include "reference/score/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

namespace rankscope::score {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPause = std::chrono::milliseconds(10);
constexpr auto kGrace = std::chrono::seconds(2);
constexpr size_t kKeptMessages = 2000;

pid_t start(const std::vector<std::string>& words, const std::filesystem::path& log) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (child > 0) return child;
    // Other threads exist: only calls that are safe between fork and exec.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    const int nothing = open("/dev/null", O_RDONLY);
    const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (nothing < 0 || output < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) _exit(127);
    execv(arguments[0], arguments.data());
    _exit(127);
}

std::string tailOf(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(stream)), {});
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.size() > kKeptMessages ? text.substr(text.size() - kKeptMessages) : text;
}

}  // namespace

CommandEnd runCommand(const std::vector<std::string>& words, const std::filesystem::path& log, int timeoutS,
                      const std::atomic<bool>& stop) {
    const pid_t child = start(words, log);
    CommandEnd end;
    auto deadline = Clock::now() + std::chrono::seconds(timeoutS);
    bool told = false;
    int status = 0;
    for (;;) {
        const pid_t gone = waitpid(child, &status, WNOHANG);
        if (gone == child || (gone < 0 && errno != EINTR)) break;
        if (Clock::now() > deadline || (stop && !told)) {
            end.timedOut = !stop;
            kill(told ? -child : child, told ? SIGKILL : SIGTERM);
            deadline = Clock::now() + kGrace;
            told = true;
        }
        std::this_thread::sleep_for(kPause);
    }
    // Whatever it left behind in its group.
    kill(-child, SIGKILL);
    end.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    end.messages = tailOf(log);
    return end;
}

}  // namespace rankscope::score
