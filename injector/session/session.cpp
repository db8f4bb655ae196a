// SPDX-License-Identifier: Apache-2.0
#include "injector/session/session.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "injector/record/block_builder.h"
#include "injector/recordable_variables.h"
#include "injector/session/capture_file_header.h"
#include "injector/session/cupti_session.h"
#include "injector/session/diagnostics.h"
#include "injector/session/light_session.h"
#include "injector/text.h"

extern "C" char** environ;

namespace rankscope::injector {

using capture::LossKind;
using capture::Source;

constinit Session g_session;
constinit thread_local ThreadState t_thread;

namespace {

constexpr uint32_t kCellsPerRing = 16384;
constexpr int64_t kRingWaitNs = 5'000'000'000;
constexpr int64_t kVirtualMachineWaitNs = 5'000'000'000;
constexpr int64_t kLastMachineWaitNs = 200'000'000;  // what a process that ends waits for a reading that runs

/// Around our registrations for the exit: libc guards its list by a lock that it does not renew in a forked child, so
/// no fork may happen meanwhile.
constinit Mutex g_exitListMutex;

pthread_key_t g_threadKey;
bool g_threadKeyMade = false;

const char* environmentValue(const char* name) {
    return std::getenv(name);
}

void onThreadEnd(void*) {
    g_session.threadEnds();
}

void onExit(int status, void*) {
    g_session.atExit(status);
}

void onQuickExit() {
    g_session.finish(EndCause::quickExit, g_session.exitStatus());
}

/// What training loops call a step in their NVTX ranges.
bool isStepName(const char* name, size_t bytes) noexcept {
    return containsWord(name, bytes, "step") || containsWord(name, bytes, "iteration");
}

}  // namespace

void Session::setMode(Mode mode) noexcept {
    m_mode.store(mode, std::memory_order_release);
}

bool Session::enterSlow(Cause cause) noexcept {
    ErrnoKeeper errnoKeeper;
    RecursionGuard guard;
    if (mode() == Mode::armed) {
        // The start itself may come back here by way of CUPTI; that call is not recorded.
        if (t_thread.depth > 1) return false;
        Lock lock(m_startMutex);
        if (mode() == Mode::armed && !start()) setMode(Mode::off);
    }
    if (cause == Cause::gpu && mode() != Mode::off && !m_gpuStarted.exchange(true)) startGpu();
    if (mode() == Mode::delayed && now() - m_beginNs >= m_config.delayNs) {
        Mode expected = Mode::delayed;
        const Mode next = m_config.range == CaptureRange::none ? Mode::recording : Mode::waiting;
        if (m_config.durationNs > 0 && next == Mode::recording) m_deadlineNs = now() + m_config.durationNs;
        if (m_mode.compare_exchange_strong(expected, next) && next == Mode::recording) cupti::enable();
    }
    return mode() == Mode::recording;
}

bool Session::start() noexcept {
    m_config = readConfig(environmentValue);
    if (m_config.directory[0] == '\0') return false;
    setVerbose(m_config.verbose);
    m_pid = static_cast<int32_t>(getpid());
    m_identity = readIdentity(environmentValue);
    if (m_config.cuptiClock) {
        const Clock::Function timestamp = cupti::timestampFunction();
        if (timestamp == nullptr) {
            say("RANKSCOPE_CLOCK=cupti, but there is no cuptiGetTimestamp: not recording");
            return false;
        }
        m_clock.startFunction(timestamp);
    } else {
        m_clock.startRealtime();
    }
    m_beginNs = now();
    if (!openFiles()) return false;
    // Light mode records little, so that the rings are emptied seldom.
    const int64_t roundNs = m_config.ringNs > 0 ? WriterThread::kPeriodNs : WriterThread::kRoundNs;
    const WriterThread::Duties duties{&Session::periodic, [] { g_session.ringsAreCut(); },
                                      [](int32_t status) { g_session.finish(EndCause::quickExit, status); }};
    if (!m_writer.start(m_rings, m_sink, duties, roundNs)) {
        say("the writer thread cannot be started: not recording");
        m_sink.close();
        m_rings.closeAndUnlink();
        return false;
    }
    if (m_config.mapsRings) m_rings.map(m_writer.tid());
    if (!g_threadKeyMade) g_threadKeyMade = pthread_key_create(&g_threadKey, onThreadEnd) == 0;
    {
        Lock lock(g_exitListMutex);
        on_exit(onExit, nullptr);
        at_quick_exit(onQuickExit);
    }
    writeEnvironment();
    for (const auto& [source, trace] :
         {std::pair{Source::hooks, static_cast<Trace>(traceNccl | traceApi)}, std::pair{Source::nvtx, traceNvtx}})
        tellStatus(source, m_config.traces(trace) ? 1 : 5, 0, "");
    if (m_config.problem[0] != '\0') tellMetadata("config.ignored", m_config.problem);
    if (m_config.delayNs > 0) {
        setMode(Mode::delayed);
    } else if (m_config.range == CaptureRange::none) {
        if (m_config.durationNs > 0) m_deadlineNs = m_beginNs + m_config.durationNs;
        setMode(Mode::recording);
    } else {
        setMode(Mode::waiting);
    }
    return true;
}

bool Session::openFiles() noexcept {
    capture::FileHeader header{};
    fillFileHeader(header, m_config, m_identity);
    header.processStartNs = m_beginNs;
    // A process that calls exec keeps its pid and start time: its second image gets a file of its own.
    for (int attempt = 0; attempt < 100; ++attempt) {
        FixedText<4096> path;
        path.append(m_config.directory)
            .append("/")
            .append(header.host)
            .append(".")
            .append(int64_t{m_pid})
            .append(".")
            .append(processStartTicks());
        if (attempt > 0) path.append("-").append(int64_t{attempt});
        const FixedText<4096> base = path;
        FixedText<4096> ringPath = path;
        path.append(".cap");
        ringPath.append(".ring");
        if (ringPath.wasCut()) return false;
        if (!m_sink.open(path.c_str(), header, m_config.maxBytes)) {
            if (errno == EEXIST) continue;
            say("a capture file cannot be made in RANKSCOPE_DIR: not recording");
            return false;
        }
        if (!m_rings.open(ringPath.c_str(), kCellsPerRing, m_pid, m_beginNs)) {
            // The hooks, and CUPTI's callbacks, have nowhere to write; CUPTI's own records still have.
            say("the ring file cannot be made: only CUPTI's kernels, copies and calls are recorded");
            m_sink.countLoss(Source::hooks, LossKind::ioError, 1, m_beginNs);
        }
        if (m_config.ringNs > 0) light::begin(m_sink, m_config, m_sink.slowStepCounter(), base.c_str(), header);
        return true;
    }
    return false;
}

void Session::startGpu() noexcept {
    // In a virtual run real time has no meaning, and a process that ends, or is killed, at once shall leave the same
    // rows each time.
    if (isVirtual()) {
        m_machine.begin(&Session::tellLinks, true);
        m_machine.wait(kVirtualMachineWaitNs);
    }
    if (!m_config.traces(traceCuda)) {
        tellStatus(Source::cupti, 5, 0, "");
        return;
    }
    cupti::start(mode() == Mode::recording);
}

/// When the process comes to have a context is not told to us, so we look after 1, 2, 4… 512 periods of 200 ms, which
/// costs next to nothing.
void Session::readMachine() noexcept {
    constexpr uint32_t kLastPeriod = 512;
    const uint32_t period = m_gpuPeriods < kLastPeriod ? ++m_gpuPeriods : 0;
    if (period != 0 && (period & (period - 1)) == 0) m_machine.begin(&Session::tellLinks, false);
}

void Session::tellLinks(const machine::LinkList& links) noexcept {
    BlockBuilder<8192> block(g_session.m_sink, Source::injector);
    for (const machine::Link& link : links) {
        capture::MachineLinkRecord record{};
        record.head = {capture::RecordType::machineLink, 1, 0};
        record.device = link.device;
        record.name = block.addString(g_session.m_strings, link.name, std::strlen(link.name));
        record.bytesPerS = link.bytesPerS;
        record.count = static_cast<uint16_t>(link.count);
        record.generation = static_cast<uint16_t>(link.generation);
        record.kind = link.kind;
        record.source = link.source;
        block.add(record);
    }
    for (size_t i = 0; i < links.placeCount(); ++i) {
        const machine::DevicePlace& place = links.places()[i];
        FixedText<48> key;
        key.append("device.").append(int64_t{place.device}).append(".bus_id");
        block.addMetadata(key.c_str(), key.size(), place.busId, std::strlen(place.busId));
    }
}

void Session::writeEnvironment() noexcept {
    if (!m_config.environment) return;
    BlockBuilder<16384> block(m_sink, Source::injector);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const char* equals = std::strchr(*entry, '=');
        if (equals == nullptr) continue;
        const auto length = static_cast<size_t>(equals - *entry);
        if (!isRecordableVariable(*entry, length)) continue;
        FixedText<256> key;
        key.append("env.").append(*entry, length);
        const RecordedValue value = recordedValue(equals + 1);
        block.addMetadata(key.c_str(), key.size(), value.c_str(), value.size());
    }
}

void Session::tellMetadata(const char* key, const char* value) noexcept {
    BlockBuilder<8192> block(m_sink, Source::injector);
    block.addMetadata(key, std::strlen(key), value, std::strlen(value));
}

void Session::tellStatus(Source source, uint16_t status, int64_t code, const char* message) noexcept {
    BlockBuilder<8192> block(m_sink, Source::injector);
    capture::StatusRecord record{};
    record.head = {capture::RecordType::status, 1, status};
    record.source = source;
    record.timeNs = m_beginNs;
    record.code = code;
    record.message = block.addString(m_strings, message, std::strlen(message));
    block.add(record);
}

Ring* Session::adoptThread() noexcept {
    ErrnoKeeper errnoKeeper;
    Undisturbed undisturbed;  // a handler that records would adopt its thread a second time
    ThreadState& thread = t_thread;
    if (thread.ring != nullptr && thread.generation == generation()) return thread.ring;
    if (thread.generation != generation()) {
        // Forked, or the first record of this thread: what belongs to the call in progress stays.
        thread.ring = nullptr;
        thread.refused = false;
        thread.commHandle = 0;
        thread.commIndex = 0;
        thread.generation = generation();
    }
    if (thread.refused || thread.ended || !m_rings.isOpen()) return nullptr;
    const auto tid = static_cast<int32_t>(syscall(SYS_gettid));
    const uint32_t index = m_nextThreadIndex.fetch_add(1, std::memory_order_relaxed);
    Ring* ring = m_rings.acquire(index, tid);
    if (ring == nullptr) {
        thread.refused = true;
        m_sink.countLoss(Source::hooks, LossKind::tooManyThreads, 1, now());
        return nullptr;
    }
    thread.threadIndex = index;
    thread.ring = ring;
    if (g_threadKeyMade) pthread_setspecific(g_threadKey, &thread);
    char name[17] = {};
    if (!readThreadName(name)) name[0] = '\0';
    nameThread(name, tid);
    return ring;
}

void Session::nameThread(const char* name, int32_t tid) noexcept {
    const uint64_t id = intern(name, std::strlen(name));
    capture::ThreadRecord record{};
    record.head = {capture::RecordType::thread, 1, 0};
    record.threadIndex = t_thread.threadIndex;
    record.tid = tid;
    record.firstNs = now();
    record.name = id;
    push(record, record.firstNs);
}

void Session::threadEnds() noexcept {
    ThreadState& thread = t_thread;
    if (thread.ring != nullptr && thread.generation == generation()) RingFile::retire(*thread.ring);
    thread.ring = nullptr;
    thread.ended = true;
}

uint64_t Session::intern(const char* text, size_t bytes) noexcept {
    const uint64_t id = stringId(text, bytes);
    if (id == 0 || m_strings.contains(id)) return id;
    const size_t kept = bytes < capture::kMaxTextBytes ? bytes : capture::kMaxTextBytes;
    alignas(8) uint8_t cells[capture::kMaxRecordCells * capture::kCellBytes];
    const size_t count = capture::cellsFor(sizeof(capture::StringRecord) + kept);
    std::memset(cells + (count - 1) * capture::kCellBytes, 0, capture::kCellBytes);
    capture::StringRecord record{};
    record.head = {capture::RecordType::string, static_cast<uint8_t>(count), static_cast<uint16_t>(kept)};
    record.fullBytes = static_cast<uint32_t>(bytes);
    record.id = id;
    std::memcpy(cells, &record, sizeof record);
    std::memcpy(cells + sizeof record, text, kept);
    if (pushCells(cells, static_cast<uint32_t>(count), 0)) m_strings.add(id);
    return id;
}

bool Session::pushLater(Ring& ring, const void* record, uint32_t cells, int64_t stampNs) noexcept {
    ErrnoKeeper errnoKeeper;
    m_writer.wake();
    if (isVirtual() && !ring.isPushing()) {
        // On the virtual clock waiting costs the job nothing, and two runs must record the same.
        const timespec pause{0, 200'000};
        for (int64_t waited = 0; waited < kRingWaitNs; waited += pause.tv_nsec) {
            if (ring.push(record, cells)) return true;
            syscall(SYS_nanosleep, &pause, nullptr);  // the virtual GPUs make virtual time of nanosleep()
            m_writer.wake();
        }
    }
    ring.countLost(stampNs);
    return false;
}

void Session::wakeWriter() noexcept {
    ErrnoKeeper errnoKeeper;
    m_writer.wake();
}

void Session::ringsAreCut() noexcept {
    m_sink.countLoss(Source::hooks, LossKind::ioError, 1, now());
}

void Session::endOfDuration() noexcept {
    ErrnoKeeper errnoKeeper;
    Mode expected = Mode::recording;
    if (m_mode.compare_exchange_strong(expected, Mode::waiting)) {
        m_config.range = CaptureRange::none;  // once over, it stays over
        cupti::disable();
    }
}

void Session::openRange() noexcept {
    ErrnoKeeper errnoKeeper;
    Mode expected = Mode::waiting;
    if (m_config.range == CaptureRange::none || !m_mode.compare_exchange_strong(expected, Mode::recording)) return;
    if (m_config.durationNs > 0 && m_deadlineNs == INT64_MAX) m_deadlineNs = now() + m_config.durationNs;
    cupti::enable();
}

void Session::closeRange() noexcept {
    ErrnoKeeper errnoKeeper;
    Mode expected = Mode::recording;
    if (m_config.range == CaptureRange::none || !m_mode.compare_exchange_strong(expected, Mode::waiting)) return;
    cupti::disable();
}

void Session::rangeBegins(const char* name, size_t bytes) noexcept {
    if (m_config.range == CaptureRange::nvtxRange) {
        if (bytes != std::strlen(m_config.rangeName) || std::memcmp(name, m_config.rangeName, bytes) != 0) return;
        if (m_rangeDepth.fetch_add(1) == 0) openRange();
    } else if (m_config.range == CaptureRange::steps && isStepName(name, bytes)) {
        const int64_t step = m_step.fetch_add(1);
        if (step == m_config.firstStep) openRange();
        if (step == m_config.lastStep + 1) closeRange();
    }
}

void Session::rangeEnds(const char* name, size_t bytes) noexcept {
    if (m_config.range == CaptureRange::nvtxRange) {
        if (bytes != std::strlen(m_config.rangeName) || std::memcmp(name, m_config.rangeName, bytes) != 0) return;
        if (m_rangeDepth.load() > 0 && m_rangeDepth.fetch_sub(1) == 1) closeRange();
    } else if (m_config.range == CaptureRange::steps && isStepName(name, bytes) &&
               m_step.load() == m_config.lastStep + 1) {
        closeRange();
    }
}

void Session::periodic() noexcept {
    g_session.everyPeriod();
}

void Session::everyPeriod() noexcept {
    cupti::flush(false);
    light::kernelSummaries().settle();
    if (m_periods == 0 && !isVirtual()) m_writer.measureRecordCost(m_clock);
    ++m_periods;
    if (m_clock.recalibrate()) tellStatus(Source::injector, 1, 0, "the system clock was set while recording");
    const bool usesGpu = m_gpuStarted.load(std::memory_order_relaxed);
    if (usesGpu && !isVirtual()) readMachine();
    if (!m_lateExitRegistered && usesGpu) {
        // Handlers run last come first: by now CUDA has registered its own, and ours must run while CUPTI still works.
        m_lateExitRegistered = true;
        Lock lock(g_exitListMutex);
        on_exit(onExit, nullptr);
    }
}

void Session::flushAtEnd() noexcept {
    if (t_thread.depth == 0) return cupti::flush(true);
    // A signal handler leaves in the middle of a library call, which may hold the very locks that a flush needs.
    m_sink.countLoss(Source::cupti, LossKind::cuptiUndelivered, 1, m_beginNs);
}

/// What the virtual GPUs say of their own times.
void Session::tellVirtualTimes() noexcept {
    if (!isVirtual()) return;
    const auto givenUp = reinterpret_cast<unsigned (*)()>(dlsym(RTLD_DEFAULT, "rankscopeVgpuThreadsGivenUp"));
    const unsigned threads = givenUp ? givenUp() : 0;
    if (threads != 0) m_sink.countLoss(Source::injector, LossKind::virtualTimes, threads, m_beginNs);
}

void Session::atExit(int32_t status) noexcept {
    if (mode() == Mode::off || mode() == Mode::armed || getpid() != m_pid) return;
    ErrnoKeeper errnoKeeper;
    m_exitStatus = status;
    flushAtEnd();
    m_writer.drainNow();
    m_sink.tellLosses();
}

void Session::writeOverhead() noexcept {
    FixedText<32> text;
    text.append(m_writer.cpuNs());
    tellMetadata("overhead.writer_cpu_ns", text.c_str());
    text.clear();
    text.append(m_writer.recordCostNs());
    tellMetadata("overhead.record_ns", text.c_str());
    text.clear();
    text.append(static_cast<int64_t>(m_sink.ringRecords()));
    tellMetadata("overhead.ring_records", text.c_str());
    if (isVirtual()) return;  // real time has no place among the events of a virtual run
    capture::OverheadRecord record{};
    record.head = {capture::RecordType::overhead, 1, static_cast<uint16_t>(0xfff0 + static_cast<int>(Source::hooks))};
    record.startNs = m_beginNs;
    record.durNs = m_writer.recordCostNs() * static_cast<int64_t>(m_sink.ringRecords());
    BlockBuilder<8192> block(m_sink, Source::injector);
    block.add(record);
}

void Session::writeEnd(EndCause cause, int32_t code) noexcept {
    capture::ProcessEndRecord end{};
    end.head = {capture::RecordType::processEnd, 1, static_cast<uint16_t>(cause)};
    end.code = code;
    // In a virtual run the newest record's time: the clock is a library call, and this may be a handler that
    // interrupted one.
    end.timeNs = isVirtual() ? m_sink.highWaterNs() : now();
    BlockBuilder<8192> block(m_sink, Source::injector);
    block.add(end);
}

bool Session::beforeExec() noexcept {
    const Mode mode = this->mode();
    if (mode == Mode::off || mode == Mode::armed || getpid() != m_pid || m_finished.load()) return false;
    ErrnoKeeper errnoKeeper;
    flushAtEnd();
    RecursionGuard guard;
    m_writer.drainNow();
    light::kernelSummaries().finish();
    m_sink.tellLosses();
    // The ring file stays: other threads may record until the kernel ends them, and the reader finds that there.
    writeEnd(EndCause::exec, -1);
    return true;
}

void Session::afterFailedExec() noexcept {
    ErrnoKeeper errnoKeeper;
    RecursionGuard guard;
    writeEnd(EndCause::execFailed, -1);
}

void Session::finish(EndCause cause, int32_t code) noexcept {
    const Mode mode = this->mode();
    if (mode == Mode::off || mode == Mode::armed || getpid() != m_pid || m_finished.exchange(true)) return;
    ErrnoKeeper errnoKeeper;
    flushAtEnd();
    RecursionGuard guard;
    cupti::finish();
    setMode(Mode::off);
    m_machine.close(kLastMachineWaitNs);
    m_writer.stop();
    m_writer.drainNow();
    m_sink.finishTaker();
    light::kernelSummaries().finish();
    writeOverhead();
    if (cause == EndCause::exit) tellVirtualTimes();  // in a handler of a signal it could wait for ever
    writeEnd(cause, cause == EndCause::exit ? m_exitStatus : code);
    m_sink.close();
    m_rings.closeAndUnlink();
}

void Session::beforeFork() noexcept {
    m_machine.beforeFork();
    g_exitListMutex.lock();
}

void Session::afterForkInParent() noexcept {
    g_exitListMutex.unlock();
    m_machine.afterForkInParent();
}

void Session::afterForkInChild() noexcept {
    g_exitListMutex.renew();
    m_machine.afterForkInChild();
    m_startMutex.renew();
    m_rangeMutex.renew();
    m_generation.fetch_add(1, std::memory_order_relaxed);
    cupti::afterForkInChild();
    // Still armed does not mean untouched: a thread may have been in the middle of start(), which begins by setting the
    // process id.
    if (m_pid == 0) return;
    m_sink.abandon();
    light::afterForkInChild();
    m_rings.abandon();
    m_writer.abandon();
    m_strings.clear();
    m_gpuStarted.store(false);
    m_finished.store(false);
    m_deadlineNs = INT64_MAX;
    m_nextThreadIndex.store(0);
    m_nextCallId.store(1);
    m_nextGroupId.store(1);
    m_step.store(0);
    m_rangeDepth.store(0);
    m_periods = 0;
    m_gpuPeriods = 0;
    m_lateExitRegistered = false;
    m_exitStatus = -1;
    // A child that uses the GPU itself begins anew with a file of its own.
    setMode(Mode::armed);
}

}  // namespace rankscope::injector
