// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/local_process.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "reference/vgpu/device/activity.h"
#include "reference/vgpu/device/data_plane.h"

namespace rankscope::vgpu {
namespace {

std::atomic<LocalProcess*> g_process{nullptr};
std::mutex g_processMutex;
std::atomic<uint64_t> g_generation{1};
std::atomic<void (*)(int64_t)> g_tellThreadEnd{nullptr};

struct ThreadSlot {
    ThreadClock clock;
    ~ThreadSlot() {
        // The main thread's slot lives as long as the process: profilers still ask for the time in exit handlers.
        if (clock.shared && clock.generation == g_generation && clock.tid != getpid())
            LocalProcess::instance().releaseThread(clock);
    }
};
thread_local ThreadSlot t_slot;
// The same without a destructor, for calls of libc that threads make before and after their other objects live.
[[gnu::tls_model("initial-exec")]] thread_local ThreadClock* t_clock = nullptr;

const char* firstOf(std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (const char* value = std::getenv(name); value && *value) return value;
    return nullptr;
}

int numberOf(std::initializer_list<const char*> names) {
    const char* text = firstOf(names);
    return text ? std::atoi(text) : -1;
}
int rankFromEnvironment() {
    return numberOf({"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"});
}
int nodeFromEnvironment() {
    return numberOf({"GROUP_RANK", "SLURM_NODEID"});
}

uint64_t textKey(const char* text) {
    uint64_t hash = 1469598103934665603ull;
    for (; *text; text++) hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211ull;
    return hash;
}

std::string jobKey() {
    if (const char* key =
            firstOf({"RANKSCOPE_VGPU_JOB", "PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid"}))
        return key;
    const char* address = std::getenv("MASTER_ADDR");
    const char* port = std::getenv("MASTER_PORT");
    if (address && port) return std::string(address) + ":" + port;
    pid_t parent = getppid();
    return "parent." + std::to_string(parent) + "." + std::to_string(processStartTime(parent));
}

[[gnu::destructor]] void leaveAtExit() {
    if (LocalProcess* process = g_process) process->isForked() ? process->beginEnding() : process->leave();
}

}  // namespace

LocalProcess& LocalProcess::instance() {
    if (LocalProcess* process = g_process.load(std::memory_order_acquire)) return *process;
    std::lock_guard guard(g_processMutex);
    if (!g_process) {
        g_process = new LocalProcess;  // lives until the process ends: exit handlers of the job still call in
        static bool once = (pthread_atfork(nullptr, nullptr,
                                           [] {
                                               if (LocalProcess* process = g_process) process->forgetAfterFork();
                                           }),
                            true);
        (void)once;
    }
    return *g_process;
}

LocalProcess* LocalProcess::ifAny() {
    return g_process.load(std::memory_order_acquire);
}

LocalProcess::LocalProcess() : m_pid(getpid()) {
    if (const char* path = std::getenv("RANKSCOPE_SCENARIO"); path && *path) {
        try {
            m_cluster = readCluster(path);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "rankscope virtual GPUs: scenario %s\n", error.what());
            std::exit(78);
        }
    }
    if (const char* cost = firstOf({"RANKSCOPE_VGPU_OPERATOR_US"}))
        m_cluster.operatorUs = std::max(0.0, std::atof(cost));
    if (const char* path = firstOf({"RANKSCOPE_VGPU_PRICES"})) m_cluster.prices = path;
    if (!m_cluster.prices.empty()) {
        try {
            m_prices = PriceTable::read(m_cluster.prices);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "rankscope virtual GPUs: prices %s\n", error.what());
            std::exit(78);
        }
    }
    if (int limit = numberOf({"NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS"}); limit > 0)
        m_cluster.maxChannels = std::min(limit, kMaxChannels);
    m_rank = rankFromEnvironment();
    placeOnNode();
}

int nodeByEnvironment(const Cluster& cluster) {
    return cluster.placement(rankFromEnvironment(), std::getenv("RANKSCOPE_HOST"), nodeFromEnvironment());
}

void LocalProcess::placeOnNode() {
    const char* host = std::getenv("RANKSCOPE_HOST");
    m_node = nodeByEnvironment(m_cluster);
    m_hostKey = host && *host ? textKey(host) : static_cast<uint64_t>(m_node);
}

void LocalProcess::forgetAfterFork() {
    // The child is a process of its own: it joins the job again at its first call. What the parent had is left alone.
    new (&g_processMutex) std::mutex;
    g_process = nullptr;
    g_generation++;
    t_clock = nullptr;
    resetActivityAfterFork();
    DataPlane::forgetAfterFork();
}

void LocalProcess::attach() {
    Arena* arena = attachArena(jobKey().c_str(), m_cluster.launchNs(), m_index);
    m_arena = arena;
    SharedLock lock(arena->lock);
    arena->processes[m_index].rank = m_rank;
    int64_t start = kEpochNs;
    for (uint32_t p = 0; p < m_index; p++)  // a restarted rank goes on where its predecessor ended
        if (m_rank >= 0 && arena->processes[p].rank == m_rank && !arena->processes[p].alive)
            start = std::max(start, arena->processes[p].lastClockNs);
    arena->processes[m_index].lastClockNs = start;
    plantPairLinks();
    m_order.resize(kOpsPerProcess);
}

void LocalProcess::plantPairLinks() {
    if (m_arena->pairLinkCount) return;  // an earlier process read the same scenario
    for (const PlantedRate& slow : m_cluster.slowLinks)
        if (slow.peer >= 0 && m_arena->pairLinkCount < kMaxPairLinks)
            m_arena->pairLinks[m_arena->pairLinkCount++] = {slow.rank, slow.peer, slow.gbps, slow.factor, 0, 0};
}

ThreadClock* LocalProcess::clockIfAny() {
    return t_clock;
}

void LocalProcess::tellThreadEndsTo(void (*tell)(int64_t)) {
    g_tellThreadEnd = tell;
}

ThreadClock* LocalProcess::clockInBounds() {
    if (!t_clock || t_clock->shared->state.load(std::memory_order_relaxed) != ThreadState::running) return nullptr;
    return t_clock;
}

ThreadClock& LocalProcess::clock() {
    ThreadClock& thread = t_slot.clock;
    if (!thread.shared || thread.generation != g_generation)
        registerThread(thread);
    else if (thread.shared->state.load(std::memory_order_acquire) == ThreadState::observing)
        rejoin(thread);
    thread.shared->hasActed = 1;
    return thread;
}

ThreadClock& LocalProcess::askingClock() {
    ThreadClock& thread = t_slot.clock;
    if (!thread.shared || thread.generation != g_generation) return clock();
    return thread;
}

bool LocalProcess::observes(const ThreadClock& thread) {
    return thread.shared->state.load(std::memory_order_acquire) == ThreadState::observing;
}

void LocalProcess::registerThread(ThreadClock& thread) {
    {
        std::lock_guard guard(m_mutex);
        if (!m_arena) attach();
    }
    SharedLock lock(m_arena->lock);
    HostThread& shared = addThread(m_index, presentNs(), static_cast<int32_t>(syscall(SYS_gettid)));
    thread = ThreadClock{&shared, shared.boundNs, thread.device, shared.tid, g_generation};
    t_clock = &thread;
}

uint32_t LocalProcess::takeThreadSlot() {
    uint32_t index = m_arena->freeThread;
    if (index != kNone) {
        m_arena->freeThread = m_arena->threads[index].nextOfProcess;
        return index;
    }
    if (m_arena->threadCount < kMaxThreads) return m_arena->threadCount++;
    refuseMore("threads", kMaxThreads);
}

/// Arena::lock is held.
HostThread& LocalProcess::addThread(uint32_t processIndex, int64_t startNs, int32_t tid) {
    const uint32_t index = takeThreadSlot();
    Process& process = m_arena->processes[processIndex];
    HostThread& shared = m_arena->threads[index];
    shared.process = processIndex;
    shared.tid = tid;
    shared.number = process.threadsMade++;
    shared.hasActed = shared.left = shared.waitKeyCount = 0;
    shared.sleepsOut = 0;
    shared.deadlineNs = kForever;
    shared.boundNs = startNs;
    shared.nextOfProcess = process.firstThread;
    process.firstThread = index;
    shared.state = ThreadState::running;
    addActive(*m_arena, process, 1);
    return shared;
}

/// Where a thread begins that nobody brought in: not before what its process has already seen. Arena::lock is held.
int64_t LocalProcess::presentNs() const {
    const Process& process = m_arena->processes[m_index];
    int64_t ns = process.lastClockNs;
    for (uint32_t t = process.firstThread; t != kNone; t = m_arena->threads[t].nextOfProcess) {
        const ThreadState state = m_arena->threads[t].state;
        if (state == ThreadState::running || state == ThreadState::waiting)
            ns = std::max(ns, m_arena->threads[t].boundNs.load());
    }
    return ns;
}

/// While it looked on the job went on without it: it cannot act before what has been simulated.
void LocalProcess::rejoin(ThreadClock& thread) {
    SharedLock lock(m_arena->lock);
    const Process& island = m_arena->processes[sharedProcess().island];
    thread.ns = std::max({thread.ns, presentNs(), island.nowNs - m_arena->launchNs});
    engine().enter(*thread.shared, thread.ns);
}

void LocalProcess::releaseThread(ThreadClock& thread) {
    t_clock = nullptr;
    if (!m_arena) return;
    if (const auto tell = g_tellThreadEnd.load())
        tell(thread.shared->state == ThreadState::running ? thread.ns : kNoClock);
    SharedLock lock(m_arena->lock);
    dropThread(*thread.shared);
    thread.shared = nullptr;
    engine().advance(m_index);
}

/// Arena::lock is held.
void LocalProcess::dropThread(HostThread& shared) {
    auto index = static_cast<uint32_t>(&shared - m_arena->threads);
    Process& process = sharedProcess();
    for (uint32_t* link = &process.firstThread; *link != kNone; link = &m_arena->threads[*link].nextOfProcess) {
        if (*link != index) continue;
        *link = shared.nextOfProcess;
        break;
    }
    if (shared.state == ThreadState::running) addActive(*m_arena, process, -1);
    if (shared.hasActed) process.lastClockNs = std::max(process.lastClockNs, shared.boundNs.load());
    shared.state = ThreadState::free;
    shared.nextOfProcess = m_arena->freeThread;
    m_arena->freeThread = index;
}

void LocalProcess::adoptThread(HostThread* shared) {
    shared->tid = static_cast<int32_t>(syscall(SYS_gettid));
    ThreadClock& thread = t_slot.clock;
    thread = ThreadClock{shared, shared->boundNs, thread.device, shared->tid, g_generation};
    t_clock = &thread;
}

void LocalProcess::leave() {
    if (!m_arena || m_hasLeft.exchange(true)) return;
    {
        SharedLock lock(m_arena->lock);
        engine().removeProcess(m_index);
        engine().advance(m_index);
    }
    detachArena(m_arena, m_index);
}

LocalDevice& LocalProcess::device(int ordinal) {
    auto [it, fresh] = m_devices.try_emplace(ordinal);
    LocalDevice& device = it->second;
    if (fresh) {
        device.rank = m_rank >= 0 ? m_rank : ordinal;
        {
            SharedLock lock(m_arena->lock);
            if (m_arena->deviceCount >= kMaxDevices) refuseMore("devices", kMaxDevices);
            device.shared = m_arena->deviceCount++;
            Device& shared = m_arena->devices[device.shared];
            shared = Device{};
            shared.process = m_index;
            shared.ordinal = static_cast<uint32_t>(ordinal);
            shared.slowedRate = m_cluster.rateBesideTransfers();
            shared.slowedTraffic = m_cluster.intra.besideCompute;
            describeDevice(device);
        }
        device.legacy = createStream(ordinal, 0, 0, true);
    }
    return device;
}

void LocalProcess::describeDevice(LocalDevice& device) {
    Device& shared = m_arena->devices[device.shared];
    device.computeFactor = m_cluster.computeFactor(device.rank, m_node);
    shared.rank = device.rank;
    shared.hostKey = m_hostKey;
    shared.out.rate = shared.in.rate = m_cluster.portGbps(device.rank);
    shared.nicOut.rate = shared.nicIn.rate = m_cluster.nicGbps(device.rank, m_node);
}

void LocalProcess::adoptRank(int rank) {
    if (m_rank >= 0) return;
    m_rank = rank;
    placeOnNode();
    for (auto& [ordinal, device] : m_devices) {
        if (m_devices.size() > 1) break;
        device.rank = rank;
        SharedLock lock(m_arena->lock);
        describeDevice(device);
    }
}

LocalStream* LocalProcess::createStream(int deviceOrdinal, unsigned flags, int priority, bool isLegacy) {
    LocalDevice& device = this->device(deviceOrdinal);
    auto stream = std::make_unique<LocalStream>();
    stream->device = deviceOrdinal;
    stream->flags = flags;
    stream->priority = priority;
    stream->ordinal = static_cast<uint32_t>(m_streams.size());
    stream->id = isLegacy ? 7 : device.nextStreamId++;
    SharedLock lock(m_arena->lock);
    if (m_arena->streamCount >= kMaxStreams) refuseMore("streams", kMaxStreams);
    stream->shared = m_arena->streamCount++;
    Stream& shared = m_arena->streams[stream->shared];
    shared.process = m_index;
    shared.device = device.shared;
    shared.ordinal = stream->ordinal;
    shared.head = shared.tail = shared.firstWaiter = shared.nextWaiter = kNone;
    shared.nextOfProcess = m_arena->processes[m_index].firstStream;
    m_arena->processes[m_index].firstStream = stream->shared;
    lock.unlock();
    m_streams.push_back(std::move(stream));
    device.streams.push_back(m_streams.back().get());
    return m_streams.back().get();
}

uint32_t LocalProcess::takeOp() {
    if (m_freeOps.empty() &&
        m_nextOp < kOpsPerProcess) {  // used ones first: every rank that moves the simulation maps their pages
        m_reports.resize(m_nextOp + 1);
        return m_nextOp++;
    }
    while (m_freeOps.empty()) {
        harvest();
        if (!m_freeOps.empty()) break;
        SharedLock lock(m_arena->lock);
        engine().advance(m_index);
    }
    uint32_t op = m_freeOps.back();
    m_freeOps.pop_back();
    return op;
}

uint32_t LocalProcess::takePart() {
    if (!m_freeParts.empty()) {
        uint32_t part = m_freeParts.back();
        m_freeParts.pop_back();
        return part;
    }
    if (m_nextPart == kPartsPerProcess) throw std::runtime_error("too many messages in flight");
    return m_nextPart++;
}

StreamPoint LocalProcess::submit(LocalStream& stream, OpSpec spec, const OpReport& report) {
    ThreadClock& thread = clock();
    Process& process = m_arena->processes[m_index];
    uint32_t index = takeOp();
    m_newestOp = index;
    Queues& queues = m_arena->queues[m_index];
    Op& op = queues.ops[index];
    op.kind = spec.kind;
    op.state = OpState::queued;
    op.contended = spec.contended;
    op.stream = stream.shared;
    op.seq = ++stream.submitted;
    op.readyNs = thread.ns + m_arena->launchNs;
    op.workNs = spec.workNs;
    op.depStream = spec.dependency.stream;
    op.depSeq = spec.dependency.seq;
    op.firstPart = kNone;
    op.pendingParts = static_cast<uint32_t>(spec.parts.size());
    for (const PartSpec& part : spec.parts) {
        uint32_t slot = takePart();
        queues.parts[slot] = part;
        queues.parts[slot].process = m_index;
        queues.parts[slot].op = index;
        queues.parts[slot].next = op.firstPart;
        op.firstPart = slot;
    }
    m_reports[index] = report;
    m_order[m_submitted++ % kOpsPerProcess] = {stream.shared, stream.submitted};
    uint64_t at = process.submitted.load(std::memory_order_relaxed);
    queues.submission[at % kOpsPerProcess] = index;
    process.submitted.store(at + 1, std::memory_order_release);
    return {stream.shared, stream.submitted};
}

void LocalProcess::waitEventOrder(LocalStream& stream, StreamPoint point) {
    if (point.stream == kNone || point.stream == stream.shared || point.seq == 0) return;
    uint64_t& seen = stream.waitedFor[point.stream];
    if (seen >= point.seq) return;
    seen = point.seq;
    OpSpec spec;
    spec.kind = OpKind::wait;
    spec.dependency = point;
    submit(stream, spec, OpReport{});
}

void LocalProcess::reportSpan(OpReport& report, int64_t startNs, int64_t endNs) {
    const std::shared_ptr<GraphSpan> span = std::move(report.span);
    span->startNs = std::min(span->startNs, startNs);
    span->endNs = std::max(span->endNs, endNs);
    if (--span->nodesLeft == 0) recordGraph(report, stamp(span->startNs), stamp(span->endNs));
}

void LocalProcess::harvest(int64_t upToNs) {
    Process& process = m_arena->processes[m_index];
    const uint64_t end = process.finished.load(std::memory_order_acquire);
    uint64_t at = process.harvested.load(std::memory_order_relaxed);
    for (; at != end; at++) harvestOne(m_arena->queues[m_index].completion[at % kOpsPerProcess], upToNs);
    process.harvested.store(at, std::memory_order_relaxed);
}

void LocalProcess::harvestEnded(int64_t byNs) {
    Process& process = m_arena->processes[m_index];
    const uint64_t end = process.finished.load(std::memory_order_acquire);
    uint64_t at = process.harvested.load(std::memory_order_relaxed);
    for (; at != end; at++) {
        const uint32_t index = m_arena->queues[m_index].completion[at % kOpsPerProcess];
        if (m_arena->queues[m_index].ops[index].endNs > byNs) break;
        harvestOne(index, byNs);
    }
    process.harvested.store(at, std::memory_order_relaxed);
}

void LocalProcess::harvestOne(uint32_t index, int64_t upToNs) {
    Queues& queues = m_arena->queues[m_index];
    Op& op = queues.ops[index];
    OpReport& report = m_reports[index];
    if (report.wanted && op.endNs <= upToNs) recordOperation(report, stamp(op.startNs), stamp(op.endNs));
    for (auto* observer : {&report.channels, &report.transfers})
        if (const auto told = std::move(*observer)) told->keep(op, queues.parts, stamp(op.startNs), stamp(op.endNs));
    if (report.span) reportSpan(report, op.startNs, op.endNs);
    for (uint32_t part = op.firstPart; part != kNone; part = queues.parts[part].next) m_freeParts.push_back(part);
    m_freeOps.push_back(index);
}

double LocalProcess::noiseFactor(LocalStream& stream) {
    uint64_t k = stream.kernels++;
    if (m_cluster.noise == 0 && m_cluster.noiseRun == 0) return 1;
    double factor =
        1 + m_cluster.noise * normalNoise(m_cluster.seed, static_cast<uint64_t>(m_rank + 1), stream.ordinal, k);
    if (m_cluster.noiseRun != 0) factor *= 1 + m_cluster.noiseRun * normalNoise(m_cluster.seed, 0x52554e, 0, 0);
    return std::max(0.05, factor);
}

}  // namespace rankscope::vgpu
