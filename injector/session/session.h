// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cerrno>

#include "injector/config.h"
#include "injector/process_identity.h"
#include "injector/record/clock.h"
#include "injector/record/string_table.h"
#include "injector/record/writer_thread.h"
#include "injector/session/machine_reading.h"
#include "injector/session/thread_state.h"

namespace rankscope::injector {

/// What the process does about its calls right now.
enum class Mode : uint8_t {
    armed = 0,  ///< nothing happened yet; the first GPU call starts recording
    recording = 1,
    delayed = 2,  ///< --delay has not passed
    waiting = 3,  ///< outside the capture range
    off = 4,      ///< not asked for, refused, or over
};

/// What the first call of this process that concerned us was.
enum class Cause : uint8_t { gpu, nvtx };

/// How the process ends; the numbers are ProcessEndRecord's.
enum class EndCause : uint16_t { exit = 1, quickExit = 2, exec = 4, execFailed = 5 };

/// The recording of this process. One per process, in static memory, never destroyed: hooks may run before and after
/// everything else. Hot path: mode(), now(), push(). The rest locks and is rare.
class Session {
  public:
    constexpr Session() = default;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    Mode mode() const noexcept { return m_mode.load(std::memory_order_acquire); }

    /// Whether calls are only passed on: the order of the modes makes this one comparison.
    bool isPassive() const noexcept { return m_mode.load(std::memory_order_relaxed) >= Mode::waiting; }

    /// Whether a call that begins now is recorded. Starts the session on the first call of the process.
    bool isRecording(Cause cause) noexcept {
        const Mode mode = this->mode();
        if (__builtin_expect(mode == Mode::recording, 1)) return true;
        if (mode >= Mode::waiting) return false;
        return enterSlow(cause);
    }

    /// Whether the session runs, inside the capture range or not: communicators are recorded in any case.
    bool isAlive(Cause cause) noexcept {
        isRecording(cause);
        return mode() != Mode::off;
    }

    const Config& config() const noexcept { return m_config; }
    int64_t now() const noexcept { return m_clock.now(); }

    /// Commits a record of this thread, or counts it as lost. Keeps errno. `stampNs` is its newest stamp.
    template <typename Record>
    void push(const Record& record, int64_t stampNs) noexcept {
        static_assert(sizeof(Record) % capture::kCellBytes == 0);
        pushCells(&record, sizeof(Record) / capture::kCellBytes, stampNs);
    }
    /// As push(), where no capture range may end: CUPTI is told nothing from inside a callback of its own.
    template <typename Record>
    void pushOnly(const Record& record, int64_t stampNs) noexcept {
        static_assert(sizeof(Record) % capture::kCellBytes == 0);
        pushCells(&record, sizeof(Record) / capture::kCellBytes, stampNs, false);
    }
    /// False: it is lost.
    bool pushCells(const void* record, uint32_t cells, int64_t stampNs, bool mayEndRange = true) noexcept {
        Ring* ring = threadRing();
        if (__builtin_expect(ring == nullptr, 0)) return false;
        if (__builtin_expect(!ring->push(record, cells), 0) && !pushLater(*ring, record, cells, stampNs)) return false;
        if (__builtin_expect(ring->needsDrain(), 0)) wakeWriter();
        if (__builtin_expect(stampNs >= m_deadlineNs, 0) && mayEndRange) endOfDuration();
        return true;
    }

    uint32_t nextSeq() noexcept { return t_thread.seq++; }
    uint64_t nextCallId() noexcept { return m_nextCallId.fetch_add(1, std::memory_order_relaxed); }
    uint32_t nextGroupId() noexcept { return m_nextGroupId.fetch_add(1, std::memory_order_relaxed); }

    /// The id of a text; the text itself goes into this thread's ring when the file does not have it yet.
    uint64_t intern(const char* text, size_t bytes) noexcept;
    /// Says that this thread has a name.
    void nameThread(const char* name, int32_t tid) noexcept;

    /// Capture range: the job says that it begins or ends.
    void openRange() noexcept;
    void closeRange() noexcept;
    /// A range or step of the job begins or ends (for nvtx:NAME and steps:A-B).
    void rangeBegins(const char* name, size_t bytes) noexcept;
    void rangeEnds(const char* name, size_t bytes) noexcept;

    /// A source came up, was refused or was shut down: the record that says so.
    void tellStatus(capture::Source source, uint16_t status, int64_t code, const char* message) noexcept;
    void tellMetadata(const char* key, const char* value) noexcept;

    CaptureSink& sink() noexcept { return m_sink; }
    StringTable& strings() noexcept { return m_strings; }
    const Clock& clock() const noexcept { return m_clock; }
    const ProcessIdentity& identity() const noexcept { return m_identity; }
    uint32_t generation() const noexcept { return m_generation.load(std::memory_order_relaxed); }
    bool isVirtual() const noexcept { return m_config.cuptiClock; }

    /// The job calls exit: everything so far goes into the file; recording goes on, because destructors may still use
    /// the GPU.
    void atExit(int32_t status) noexcept;
    /// Nothing of the job runs after this.
    void finish(EndCause cause, int32_t code) noexcept;
    /// The process is about to become another one: everything so far and a last word go into the file. False: there is
    /// nothing to tell, and nothing was touched.
    bool beforeExec() noexcept;
    /// It did not: the last word is taken back, and recording goes on.
    void afterFailedExec() noexcept;
    int32_t exitStatus() const noexcept { return m_exitStatus; }
    void noteExitStatus(int32_t status) noexcept { m_exitStatus = status; }
    /// Another copy of the library does the work.
    void switchOff() noexcept { m_mode.store(Mode::off, std::memory_order_release); }
    /// Around a fork, on the forking thread; in the child it is the only one.
    void beforeFork() noexcept;
    void afterForkInParent() noexcept;
    void afterForkInChild() noexcept;
    /// The calling thread ends.
    void threadEnds() noexcept;

  private:
    Ring* threadRing() noexcept {
        ThreadState& thread = t_thread;
        if (__builtin_expect(thread.ring != nullptr && thread.generation == generation(), 1)) return thread.ring;
        return adoptThread();
    }
    bool enterSlow(Cause cause) noexcept;
    bool start() noexcept;
    bool openFiles() noexcept;
    void startGpu() noexcept;
    void readMachine() noexcept;
    void writeEnvironment() noexcept;
    Ring* adoptThread() noexcept;
    bool pushLater(Ring& ring, const void* record, uint32_t cells, int64_t stampNs) noexcept;
    void wakeWriter() noexcept;
    void endOfDuration() noexcept;
    void ringsAreCut() noexcept;
    void setMode(Mode mode) noexcept;
    static void periodic() noexcept;
    void everyPeriod() noexcept;
    void writeOverhead() noexcept;
    static void tellLinks(const machine::LinkList& links) noexcept;
    void flushAtEnd() noexcept;
    void tellVirtualTimes() noexcept;
    void writeEnd(EndCause cause, int32_t code) noexcept;

    std::atomic<Mode> m_mode{Mode::armed};
    std::atomic<uint32_t> m_generation{1};
    std::atomic<bool> m_gpuStarted{false};
    std::atomic<bool> m_finished{false};
    int64_t m_deadlineNs = INT64_MAX;
    int64_t m_beginNs = 0;
    Clock m_clock;
    Config m_config;
    ProcessIdentity m_identity;
    CaptureSink m_sink;
    RingFile m_rings;
    WriterThread m_writer;
    StringTable m_strings;
    MachineReading m_machine;
    Mutex m_startMutex;
    Mutex m_rangeMutex;
    std::atomic<uint64_t> m_nextCallId{1};
    std::atomic<uint32_t> m_nextGroupId{1};
    std::atomic<uint32_t> m_nextThreadIndex{0};
    std::atomic<int64_t> m_step{0};
    std::atomic<uint32_t> m_rangeDepth{0};
    uint32_t m_periods = 0;
    uint32_t m_gpuPeriods = 0;
    bool m_lateExitRegistered = false;
    int32_t m_pid = 0;
    int32_t m_exitStatus = -1;
};

extern constinit Session g_session;

/// Puts errno back at the end of its scope and lets no cancellation in: around everything of ours that calls into libc.
class ErrnoKeeper {
  public:
    ErrnoKeeper() noexcept : m_errno(errno) { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &m_cancelState); }
    ~ErrnoKeeper() {
        pthread_setcancelstate(m_cancelState, nullptr);
        errno = m_errno;
    }
    ErrnoKeeper(const ErrnoKeeper&) = delete;
    ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

  private:
    int m_errno;
    int m_cancelState = 0;
};

}  // namespace rankscope::injector
