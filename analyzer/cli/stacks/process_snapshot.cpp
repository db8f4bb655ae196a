// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/stacks/process_snapshot.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <span>
#include <thread>

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Deep recursions of interpreters fit; what lies beyond is the outermost frames.
constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kBelowStackPointer = 128;  // the red zone of the x86-64 ABI
// Jobs of a thousand threads (one per core and pool) are read in part: 64 MiB are copied at most.
constexpr size_t kMostThreads = 256;
// A thread stops as soon as it leaves the kernel or is woken in it. One that waits for a device (state D) does not.
constexpr auto kStopWait = std::chrono::milliseconds(100);

std::string fileText(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text;
    std::getline(file, text, '\0');  // of a process that is ending reading fails, by which an iterator would throw
    return text;
}

std::vector<pid_t> threadsOf(pid_t pid) {
    std::vector<pid_t> threads;
    std::error_code error;  // that of a process which ends meanwhile is the end of its threads
    for (fs::directory_iterator at(fmt::format("/proc/{}/task", pid), error), end; !error && at != end;
         at.increment(error))
        threads.push_back(static_cast<pid_t>(std::atoi(at->path().filename().c_str())));
    std::ranges::sort(threads);  // the main thread's id is the process's, and the lowest unless numbers have wrapped
    std::ranges::stable_partition(threads, [pid](pid_t tid) { return tid == pid; });
    return threads;
}

void describe(pid_t pid, ThreadSnapshot& thread) {
    const std::string folder = fmt::format("/proc/{}/task/{}/", pid, thread.tid);
    thread.name = fileText(folder + "comm");
    if (!thread.name.empty() && thread.name.back() == '\n') thread.name.pop_back();
    const std::string stat = fileText(folder + "stat");  // "TID (NAME) STATE ...", and the name may hold brackets
    const size_t afterName = stat.rfind(')');
    if (afterName != std::string::npos && afterName + 2 < stat.size()) thread.state = stat[afterName + 2];
}

bool copyRegisters(ThreadSnapshot& thread) {
    user_regs_struct registers{};
    iovec into{&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, thread.tid, NT_PRSTATUS, &into) != 0) return false;
#if defined(__x86_64__)
    const auto& r = registers;
    thread.registers = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                        r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
    thread.programCounter = r.rip;
    thread.stackStart = r.rsp - kBelowStackPointer;
#elif defined(__aarch64__)
    thread.registers.assign(registers.regs, registers.regs + 31);
    thread.registers.push_back(registers.sp);
    thread.programCounter = registers.pc;
    thread.stackStart = registers.sp;
#else
    return false;
#endif
    return true;
}

class Tracer {
  public:
    explicit Tracer(ProcessSnapshot& snapshot)
        : m_snapshot(snapshot),
          m_memory(open(fmt::format("/proc/{}/mem", snapshot.pid).c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~Tracer() {
        if (m_memory >= 0) close(m_memory);
    }
    Tracer(const Tracer&) = delete;
    Tracer& operator=(const Tracer&) = delete;

    // False when the thread did not stop: it stays asked to until this tracer's own thread ends.
    bool read(ThreadSnapshot& thread) {
        if (ptrace(PTRACE_SEIZE, thread.tid, nullptr, nullptr) != 0) {
            if (errno == ESRCH) return true;  // it has ended, or is ending
            // A main thread that has ended before the others is refused, too, and so is one that a debugger has.
            ++m_snapshot.untraceable;
            m_snapshot.refused = fmt::format("ptrace: {}", std::strerror(errno));
            return true;
        }
        const auto begin = Clock::now();
        ptrace(PTRACE_INTERRUPT, thread.tid, nullptr, nullptr);
        int signal = 0;
        switch (waitForStop(thread.tid, signal)) {
            case Stop::stopped:
                if (copyRegisters(thread)) copyStack(thread);
                ptrace(PTRACE_DETACH, thread.tid, nullptr, reinterpret_cast<void*>(static_cast<intptr_t>(signal)));
                m_snapshot.longestStopNs =
                    std::max<int64_t>(m_snapshot.longestStopNs, std::chrono::nanoseconds(Clock::now() - begin).count());
                break;
            case Stop::ended:
                break;
            case Stop::late:
                ++m_snapshot.unread;
                return false;
        }
        return true;
    }

  private:
    enum class Stop { stopped, ended, late };

    // `signal`: that was about to be delivered, and is when the thread goes on.
    Stop waitForStop(pid_t tid, int& signal) const {
        const auto end = Clock::now() + kStopWait;
        for (auto pause = std::chrono::microseconds(20); Clock::now() < end;
             pause = std::min(2 * pause, kLongestPause)) {
            // Nothing is taken: how our own child ended is for those to read who started it.
            siginfo_t info{};
            if (waitid(P_PID, static_cast<id_t>(tid), &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) != 0)
                return Stop::ended;
            if (info.si_pid == 0) {
                std::this_thread::sleep_for(pause);
                continue;
            }
            if (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED) {
                const bool isEvent = info.si_status >> 8 != 0;  // of ptrace; else a signal on its way
                signal = isEvent ? 0 : info.si_status;
                return Stop::stopped;
            }
            // Of threads, and of processes that are not our children, the end is told to the tracer first and to others
            // behind it.
            if (!isOurChild(tid)) waitid(P_PID, static_cast<id_t>(tid), &info, WEXITED | WNOHANG | __WALL);
            return Stop::ended;
        }
        return Stop::late;
    }

    bool isOurChild(pid_t tid) const {
        if (tid != m_snapshot.pid) return false;
        const std::string stat = fileText(fmt::format("/proc/{}/stat", tid));
        const size_t afterName = stat.rfind(')');
        return afterName != std::string::npos &&
               std::atoi(stat.c_str() + std::min(afterName + 4, stat.size())) == getpid();
    }

    void copyStack(ThreadSnapshot& thread) const {
        thread.stack.resize(kStackBytes);
        const ssize_t got =
            m_memory < 0 ? 0 : pread(m_memory, thread.stack.data(), kStackBytes, static_cast<off_t>(thread.stackStart));
        thread.stack.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
        thread.stack.shrink_to_fit();
    }

    static constexpr auto kLongestPause = std::chrono::microseconds(1000);

    ProcessSnapshot& m_snapshot;
    int m_memory;
};

}  // namespace

ProcessSnapshot takeSnapshot(pid_t pid) {
    ProcessSnapshot snapshot{.pid = pid, .maps = fileText(fmt::format("/proc/{}/maps", pid))};
    const std::vector<pid_t> all = threadsOf(pid);
    snapshot.beyond = static_cast<int>(all.size() - std::min(all.size(), kMostThreads));
    for (const pid_t tid : std::span(all).first(std::min(all.size(), kMostThreads)))
        describe(pid, snapshot.threads.emplace_back(ThreadSnapshot{.tid = tid}));
    // Threads of their own: what does not stop cannot be let go of but by the end of the thread that asked it to.
    size_t next = 0;
    std::exception_ptr failure;
    const auto trace = [&] {
        try {
            Tracer one(snapshot);
            while (next < snapshot.threads.size())
                if (!one.read(snapshot.threads[next++])) return;
        } catch (...) {
            failure = std::current_exception();
        }
    };
    while (next < snapshot.threads.size() && !failure) std::thread(trace).join();
    if (failure) std::rethrow_exception(failure);
    const bool anyRead = std::ranges::any_of(snapshot.threads, [](const auto& one) { return !one.registers.empty(); });
    if (anyRead || snapshot.unread > 0) snapshot.refused.clear();
    if (!snapshot.refused.empty()) snapshot.untraceable = 0;
    return snapshot;
}

}  // namespace rankscope::cli
