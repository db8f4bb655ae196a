// SPDX-License-Identifier: Apache-2.0
#include "injector/record/writer_thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "injector/record/futex.h"

namespace rankscope::injector {
namespace {

constexpr int64_t kStopWaitNs = 2'000'000'000;
constexpr int64_t kStartWaitNs = 1'000'000'000;  // where the machine is so busy, the rings stay in own memory
constexpr size_t kStackBytes = 1u << 20;         // CUPTI's buffer callbacks run on it too

/// Whether only the main thread's remains and this thread are left: two threads, and the main one is a zombie. Then
/// `status` is what it left with (proc(5), exit_code: as waitpid tells it).
bool isLastThread(int32_t& status) noexcept {
    struct Stat {
        char text[1024] = {};
        bool read(const char* path) noexcept {
            const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
            if (fd < 0) return false;
            const ssize_t got = ::read(fd, text, sizeof text - 1);
            ::close(fd);
            return got > 0;
        }
        /// Counted from the name's closing parenthesis: 1 is the state, 18 the number of threads.
        const char* field(int number) const noexcept {
            const char* at = std::strrchr(text, ')');
            for (int i = 0; i < number && at != nullptr; ++i) at = std::strchr(at + 1, ' ');
            return at == nullptr ? "" : at + 1;
        }
    };
    Stat process;
    if (!process.read("/proc/self/stat") || process.field(1)[0] != 'Z' || std::strncmp(process.field(18), "2 ", 2) != 0)
        return false;
    constexpr int kExitCode = 50;
    status = static_cast<int32_t>(std::strtol(process.field(kExitCode), nullptr, 10) >> 8 & 0xff);
    return true;
}

}  // namespace

bool WriterThread::start(RingFile& rings, CaptureSink& sink, const Duties& duties, int64_t roundNs) noexcept {
    m_rings = &rings;
    m_sink = &sink;
    m_duties = duties;
    m_roundNs = roundNs;
    m_stop.store(false, std::memory_order_relaxed);
    m_alive.store(1, std::memory_order_relaxed);
    m_tid.store(0, std::memory_order_relaxed);
    // The job's signals must reach the job's threads.
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_t thread;
    const int error = pthread_create(
        &thread, &attributes, [](void* self) { return entry(self); }, this);
    pthread_attr_destroy(&attributes);
    sigprocmask(SIG_SETMASK, &old, nullptr);
    if (error != 0) m_alive.store(0, std::memory_order_relaxed);
    if (error == 0 && tid() == 0) futexWait(m_tid, 0, kStartWaitNs);
    return error == 0;
}

void* WriterThread::entry(void* self) noexcept {
    prctl(PR_SET_NAME, "rankscope", 0, 0, 0);
    auto& writer = *static_cast<WriterThread*>(self);
    writer.m_tid.store(static_cast<uint32_t>(syscall(SYS_gettid)), std::memory_order_release);
    futexWake(writer.m_tid);
    writer.run();
    return nullptr;
}

void WriterThread::run() noexcept {
    int32_t lastStatus = 0;
    int64_t sinceNs = 0;  // the last period, in rounds that passed or were cut short
    while (!m_stop.load(std::memory_order_acquire)) {
        const uint32_t seen = m_signal.load(std::memory_order_acquire);
        m_asleep.store(true, std::memory_order_seq_cst);
        const int64_t roundNs = m_rings->isMapped() ? m_roundNs : kOwnMemoryRoundNs;
        futexWait(m_signal, seen, roundNs);
        m_asleep.store(false, std::memory_order_relaxed);
        if (m_stop.load(std::memory_order_acquire)) break;
        lookAtRings();
        drainNow();
        if ((sinceNs += roundNs) < kPeriodNs) continue;
        sinceNs = 0;
        tendRings();
        m_sink->tellLosses();
        m_sink->tellWatchers();
        if (m_duties.periodic != nullptr) m_duties.periodic();
        // When the job's last thread leaves by pthread_exit, the process ends with that thread. It must not wait for
        // ours.
        if (isLastThread(lastStatus)) break;
        timespec used{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        m_cpuNs.store(int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec, std::memory_order_relaxed);
    }
    m_alive.store(0, std::memory_order_release);
    futexWake(m_alive);
    // The C library ends the process when its last thread returns, and knows nothing of one that left by the system
    // call itself; the kernel tells the status of whoever leaves last, which is us.
    if (lastStatus == 0) return;
    if (m_duties.lastThreadEnds != nullptr) m_duties.lastThreadEnds(lastStatus);
    for (;;) syscall(SYS_exit, lastStatus);
}

void WriterThread::wake() noexcept {
    if (!m_asleep.load(std::memory_order_relaxed)) return;
    m_signal.fetch_add(1, std::memory_order_release);
    futexWake(m_signal);
}

void WriterThread::lookAtRings() noexcept {
    bool isCut = false;
    {
        Lock lock(m_consumer);
        isCut = m_rings->look();
    }
    if (isCut && m_duties.ringsAreCut != nullptr) m_duties.ringsAreCut();
}

void WriterThread::tendRings() noexcept {
    Lock lock(m_consumer);
    m_rings->tend();
}

void WriterThread::drainNow() noexcept {
    Lock lock(m_consumer);
    const uint32_t count = m_rings->count();
    for (uint32_t i = 0; i < count; ++i) {
        Ring& ring = m_rings->ring(i);
        // The state first: what an ended thread pushed came before it.
        const Ring::State state = ring.state();
        if (state == Ring::State::free) continue;
        m_sink->drain(ring, m_toldLost[i]);
        if (state != Ring::State::ended) continue;
        m_toldLost[i] = 0;
        RingFile::free(ring);
    }
}

void WriterThread::stop() noexcept {
    m_stop.store(true, std::memory_order_release);
    m_signal.fetch_add(1, std::memory_order_release);
    futexWake(m_signal);
    timespec begin{};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (m_alive.load(std::memory_order_acquire) != 0) {
        futexWait(m_alive, 1, kStopWaitNs);
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((now.tv_sec - begin.tv_sec) * 1'000'000'000 + (now.tv_nsec - begin.tv_nsec) >= kStopWaitNs) return;
    }
}

void WriterThread::measureRecordCost(const Clock& clock) noexcept {
    constexpr uint32_t kCells = 512;
    constexpr int kRounds = 8;
    static uint8_t cells[kCells * capture::kCellBytes];
    static capture::RingHeader header;
    int64_t least = INT64_MAX;
    for (int round = 0; round < kRounds; ++round) {
        Ring ring;
        header = {};
        ring.bind(&header, cells, kCells);
        const int64_t begin = clock.now();
        for (uint32_t i = 0; i < kCells; ++i) {
            capture::ApiCallRecord record{};
            record.head = {capture::RecordType::apiCall, 1, 0};
            record.startNs = clock.now();
            record.endNs = clock.now();
            ring.push(&record, 1);
        }
        const int64_t passed = clock.now() - begin;
        if (passed < least) least = passed;
    }
    m_recordCostNs.store(least / kCells, std::memory_order_relaxed);
}

void WriterThread::abandon() noexcept {
    m_consumer.renew();
    m_asleep.store(false, std::memory_order_relaxed);
    m_alive.store(0, std::memory_order_relaxed);
    for (uint64_t& lost : m_toldLost) lost = 0;
}

}  // namespace rankscope::injector
