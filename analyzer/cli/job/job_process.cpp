// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/job_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "analyzer/cli/console/errors.h"

namespace rankscope::cli {
namespace {

[[noreturn]] void throwCannotExecute(const std::string& command, int cause) {
    const auto code = static_cast<ExitCode>(cause == ENOENT ? kExitCommandNotFound : kExitCommandNotExecutable);
    throw VerbError(code, fmt::format("cannot execute {}: {}", command, std::strerror(cause)));
}

pid_t start(const ProcessToStart& process, const HeldSignals& signals, bool endWithUs) {
    const std::string path = findCommand(process.command.front(), process.environment);
    if (path.empty()) throwCannotExecute(process.command.front(), ENOENT);
    const auto arguments = pointers(process.command);
    const auto environment = pointers(process.environment);
    int report[2];
    checked(pipe2(report, O_CLOEXEC), "pipe2");
    const pid_t parent = getpid();
    const pid_t child = checked(fork(), "fork");
    if (child == 0) {
        if (endWithUs) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            if (getppid() != parent) _exit(kExitCommandNotExecutable);  // it died before we asked
        }
        signals.restore();
        execve(path.c_str(), arguments.data(), environment.data());
        int cause = errno;
        if (cause == ENOEXEC) {  // a script without a #! line: what execvp and every shell do
            std::vector<char*> shell = {const_cast<char*>("/bin/sh"), const_cast<char*>(path.c_str())};
            shell.insert(shell.end(), arguments.begin() + 1, arguments.end());
            execve("/bin/sh", shell.data(), environment.data());
        }
        const ssize_t written = write(report[1], &cause, sizeof cause);
        _exit(written > 0 ? kExitCommandNotExecutable : kExitCommandNotFound);
    }
    close(report[1]);
    int cause = 0;
    ssize_t got;
    do got = read(report[0], &cause, sizeof cause);
    while (got < 0 && errno == EINTR);
    close(report[0]);
    if (got == sizeof cause) {
        waitpid(child, nullptr, 0);
        throwCannotExecute(process.command.front(), cause);
    }
    return child;
}

/// What people, terminals and schedulers end a job by.
bool endsJobs(int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

// Looked at first, since waitpid would take the stop of a process whose stack another thread of ours is reading.
bool hasEnded(pid_t child) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
           (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED);
}

// The job goes on, whatever becomes of those who watch it.
void callWatch(const std::function<void()>& call) {
    try {
        if (call) call();
    } catch (...) {  // nothing that was thrown is worth the job
    }
}

class Children {
  public:
    explicit Children(size_t count) { m_end.processes.resize(count); }

    void add(pid_t pid) { m_pids.push_back(pid); }

    void send(int signal) const {
        for (pid_t pid : m_pids)
            if (pid > 0) kill(pid, signal);
    }

    void pass(const siginfo_t& info) {
        if (endsJobs(info.si_signo) && m_end.firstFailed < 0 && !jobHasSent(info, m_pids))
            m_end.stopSignal = info.si_signo;
        if (jobHasSeen(info, m_pids)) return;
        for (pid_t pid : m_pids)
            if (pid > 0) forward(info, pid);
    }

    bool reap() {
        for (size_t i = 0; i < m_pids.size(); ++i) {
            int status = 0;
            if (m_pids[i] <= 0 || !hasEnded(m_pids[i]) || waitpid(m_pids[i], &status, WNOHANG) != m_pids[i]) continue;
            m_pids[i] = 0;
            m_end.processes[i] = decodeWaitStatus(status);
            if (m_end.processes[i].failed() && m_end.firstFailed < 0) m_end.firstFailed = static_cast<int>(i);
        }
        return std::ranges::all_of(m_pids, [](pid_t pid) { return pid == 0; });
    }

    const JobEnd& end() const { return m_end; }

  private:
    std::vector<pid_t> m_pids;  // 0: gone
    JobEnd m_end;
};

}  // namespace

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> result;
    for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
    result.push_back(nullptr);
    return result;
}

ProcessEnd decodeWaitStatus(int status) {
    if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
    return {WEXITSTATUS(status), 0};
}

Environment currentEnvironment() {
    Environment result;
    for (char** entry = environ; *entry; ++entry) result.emplace_back(*entry);
    return result;
}

void setVariable(Environment& environment, const std::string& name, const std::string& value) {
    unsetVariable(environment, name);
    environment.push_back(name + "=" + value);
}

void unsetVariable(Environment& environment, const std::string& name) {
    std::erase_if(environment, [prefix = name + "="](const std::string& entry) { return entry.starts_with(prefix); });
}

std::string getVariable(const Environment& environment, const std::string& name) {
    const std::string prefix = name + "=";
    for (const auto& entry : environment)
        if (entry.starts_with(prefix)) return entry.substr(prefix.size());
    return {};
}

std::string findCommand(const std::string& command, const Environment& environment) {
    if (command.empty()) return {};
    if (command.find('/') != std::string::npos) return access(command.c_str(), F_OK) == 0 ? command : std::string();
    std::string path = getVariable(environment, "PATH");
    if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
    std::string notExecutable;
    for (size_t begin = 0; begin <= path.size();) {
        const size_t end = std::min(path.find(':', begin), path.size());
        const std::string folder = path.substr(begin, end - begin);
        const std::string candidate = (folder.empty() ? "." : folder) + "/" + command;
        if (access(candidate.c_str(), X_OK) == 0) return candidate;
        if (notExecutable.empty() && access(candidate.c_str(), F_OK) == 0) notExecutable = candidate;
        begin = end + 1;
    }
    return notExecutable;
}

std::string requireCommand(const std::string& command, const Environment& environment) {
    std::string path = findCommand(command, environment);
    if (path.empty())
        throw VerbError(static_cast<ExitCode>(kExitCommandNotFound), fmt::format("{}: command not found", command));
    return path;
}

JobEnd runJob(const std::vector<ProcessToStart>& processes, HeldSignals& signals, int gracePeriodMs, bool endWithUs,
              const JobWatch& watch) {
    Children children(processes.size());
    siginfo_t info{};
    try {
        for (const auto& process : processes) children.add(start(process, signals, endWithUs));
    } catch (...) {
        children.send(SIGKILL);
        while (!children.reap()) signals.wait(info);
        throw;
    }
    using Clock = std::chrono::steady_clock;
    const bool watched = watch.look != nullptr;
    Clock::time_point looked = Clock::now();
    int cleanup = 0;  // how often the survivors of a failure have been told to go
    while (!children.reap()) {
        const bool cleaning = children.end().firstFailed >= 0 && cleanup < 2;
        // A queued SIGCHLD can be that of a child already reaped, which only costs a round.
        const int signal = signals.wait(info, cleaning ? gracePeriodMs : watched ? watch.periodMs : -1);
        if (signal == 0 && cleaning) children.send(cleanup++ == 0 ? SIGTERM : SIGKILL);
        if (watched && Clock::now() - looked >= std::chrono::milliseconds(watch.periodMs)) {
            callWatch(watch.look);
            looked = Clock::now();
        }
        if (signal == 0 || signal == SIGCHLD) continue;
        if (signal == watch.ownSignal) {
            callWatch(watch.onOwnSignal);
            continue;
        }
        children.pass(info);
        if (isStopSignal(signal)) stopBy(signal);
    }
    callWatch(watch.jobHasEnded);
    signals.jobHasEnded();
    return children.end();
}

void endLike(const ProcessEnd& end) {
    std::fflush(nullptr);
    if (end.signal != 0) {
        const rlimit none{0, 0};
        setrlimit(RLIMIT_CORE, &none);
        struct sigaction standard {};
        standard.sa_handler = SIG_DFL;
        sigaction(end.signal, &standard, nullptr);
        sigset_t only;
        sigemptyset(&only);
        sigaddset(&only, end.signal);
        sigprocmask(SIG_UNBLOCK, &only, nullptr);
        kill(getpid(), end.signal);
        _exit(128 + end.signal);
    }
    _exit(end.status);
}

}  // namespace rankscope::cli
