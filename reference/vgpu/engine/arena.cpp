// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/arena.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace rankscope::vgpu {
namespace {

constexpr uint64_t kMagic = 0x56475055'00000001;
constexpr const char* kFolder = "/dev/shm";

// Two builds whose arenas look different never share one, nor judge each other's: the name of the file tells them
// apart.
constexpr uint64_t layoutTag() {
    uint64_t tag = kMagic;
    for (uint64_t size : {sizeof(Arena), sizeof(Process), sizeof(Comm), sizeof(Transfer), sizeof(Part), sizeof(Op),
                          sizeof(Device), sizeof(HostThread), sizeof(Stream), offsetof(Arena, progress),
                          offsetof(Arena, pairLinks), offsetof(Process, submitted)})
        tag = (tag ^ size) * 1099511628211ull;
    return tag >> 32;
}

std::string filePrefix() {
    char text[48];
    std::snprintf(text, sizeof text, "rankscope-vgpu-%08llx.", static_cast<unsigned long long>(layoutTag()));
    return text;
}

int g_arenaFd = -1;
std::string g_arenaPath;

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "rankscope virtual GPUs: %s: %s (is /dev/shm writable?)\n", what, std::strerror(errno));
    std::abort();
}

void initializeMutex(pthread_mutex_t& mutex) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

// The folder is everybody's: what another user has put there under our name is not ours, however it is opened to us.
constexpr int kOpenFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

bool isOwn(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & 077) == 0;
}

// The file is as large as all memory of the job's devices, and all but empty: a limit of file size (ulimit -f) that can
// be lifted is lifted for this one file.
bool makeLarge(int fd, uint64_t bytes) {
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const bool isLimited = limit.rlim_cur < bytes;
    if (isLimited && limit.rlim_max < bytes) {  // the kernel would not only refuse, but end us by SIGXFSZ
        errno = EFBIG;
        return false;
    }
    const rlimit lifted{limit.rlim_max, limit.rlim_max};
    if (isLimited) setrlimit(RLIMIT_FSIZE, &lifted);
    const bool done = ftruncate(fd, static_cast<off_t>(bytes)) == 0;
    const int cause = errno;
    if (isLimited) setrlimit(RLIMIT_FSIZE, &limit);
    errno = cause;
    return done;
}

bool hasLiveProcess(const Arena& arena) {
    for (uint32_t i = 0; i < arena.processCount && i < kMaxProcesses; i++) {
        const Process& process = arena.processes[i];
        if (process.alive && processLives(process.pid, process.startTime)) return true;
    }
    return false;
}

// A job that was killed as a whole leaves its file behind; whoever starts the next job removes it.
void removeStaleArenas() {
    DIR* folder = opendir(kFolder);
    if (!folder) return;
    const std::string prefix = filePrefix();
    while (const dirent* entry = readdir(folder)) {
        if (std::strncmp(entry->d_name, prefix.c_str(), prefix.size()) != 0) continue;
        std::string path = std::string(kFolder) + "/" + entry->d_name;
        int fd = open(path.c_str(), kOpenFlags);
        if (fd < 0) continue;
        if (isOwn(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            struct stat status;
            if (fstat(fd, &status) == 0 && static_cast<uint64_t>(status.st_size) >= sizeof(Arena)) {
                void* memory = mmap(nullptr, sizeof(Arena), PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
                if (memory != MAP_FAILED) {
                    if (!hasLiveProcess(*static_cast<Arena*>(memory))) unlink(path.c_str());
                    munmap(memory, sizeof(Arena));
                }
            } else {
                unlink(path.c_str());
            }
        }
        close(fd);
    }
    closedir(folder);
}

void beginProcess(Process& process, uint32_t index) {
    process.rank = -1;
    process.island = process.family = index;
    process.nextOfIsland = kNone;
    process.firstThread = process.firstStream = process.firstFlow = process.blocker = kNone;
    process.nowNs = kEpochNs;
}

uint64_t hashText(const char* text) {
    uint64_t hash = 1469598103934665603ull;
    for (; *text; text++) hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211ull;
    return hash;
}

// Plain data: a thread's last lock may be let go by the destructors of its other thread-local objects.
constexpr uint32_t kMaxWakes = 64;
thread_local std::atomic<uint32_t>* t_wakes[kMaxWakes];
thread_local uint32_t t_wakeCount = 0;

void wakeNow() {
    while (t_wakeCount) futexWake(*t_wakes[--t_wakeCount]);
}

/// Counted before a lock is asked for and after it is given back: a signal handler may look at any moment.
thread_local volatile int t_held = 0;

using StatText = char[1024];

/// The fields of a /proc/…/stat from the state on; the name before them may contain blanks and brackets. Null: there is
/// no such process or thread.
const char* statBehindName(const char* path, StatText& text) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    const ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) return nullptr;
    text[length] = 0;
    const char* end = std::strrchr(text, ')');
    return end && end[1] == ' ' && end[2] ? end + 2 : nullptr;
}

}  // namespace

void wakeBehindLock(std::atomic<uint32_t>& word) {
    if (t_wakeCount == kMaxWakes) wakeNow();
    t_wakes[t_wakeCount++] = &word;
}

void refuseMore(const char* what, uint32_t most) {
    std::fprintf(stderr, "rankscope virtual GPUs: a virtual job holds at most %u %s, and this is one more\n", most,
                 what);
    std::abort();
}

void initializeArena(Arena& arena, int64_t launchNs) {
    initializeMutex(arena.lock);
    initializeMutex(arena.dataLock);
    arena.launchNs = launchNs;
    arena.freeTransfer = arena.freeExchange = arena.freeThread = arena.freeStream = kNone;
    arena.dataUsed = 4096;
    arena.magic = kMagic;
}

SharedLock::SharedLock(pthread_mutex_t& mutex) : m_mutex(mutex) {
    lock();
}

bool SharedLock::isHeldHere() {
    return t_held != 0;
}

void SharedLock::lock() {
    t_held = t_held + 1;
    if (pthread_mutex_lock(&m_mutex) == EOWNERDEAD) {
        pthread_mutex_consistent(&m_mutex);
        m_ownerDied = true;
    }
    m_held = true;
}

void SharedLock::unlock() {
    if (!m_held) return;
    m_held = false;
    pthread_mutex_unlock(&m_mutex);
    t_held = t_held - 1;
    wakeNow();
}

bool SharedLock::takeOwnerDied() {
    bool died = m_ownerDied;
    m_ownerDied = false;
    return died;
}

Arena* attachArena(const char* key, int64_t launchNs, uint32_t& processIndex) {
    char name[48];
    std::snprintf(name, sizeof name, "%u.%016llx", static_cast<unsigned>(getuid()),
                  static_cast<unsigned long long>(hashText(key)));
    const std::string wanted = std::string(kFolder) + "/" + filePrefix() + name;
    g_arenaPath = wanted;
    constexpr int kMostNames = 16;
    for (int taken = 0;;) {
        int fd = open(g_arenaPath.c_str(), kOpenFlags);
        if (fd < 0 && errno == ENOENT) {
            removeStaleArenas();
            fd = open(g_arenaPath.c_str(), kOpenFlags | O_CREAT, 0600);
        }
        if (fd < 0 || !isOwn(fd)) {
            // All processes of the job find the same names taken, and go to the same next one.
            if (fd >= 0) close(fd);
            if (++taken == kMostNames) fail("cannot open shared memory");
            g_arenaPath = wanted + "." + std::to_string(taken);
            continue;
        }
        while (flock(fd, LOCK_EX) != 0 && errno == EINTR) {
        }
        struct stat status;
        if (fstat(fd, &status) != 0) fail("cannot stat shared memory");
        if (status.st_nlink == 0) {  // the last process of an earlier job was just removing it
            close(fd);
            continue;
        }
        bool fresh = status.st_size == 0;
        if (fresh && !makeLarge(fd, kArenaBytes)) fail("cannot size shared memory (ulimit -f?)");
        void* memory = mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (memory == MAP_FAILED) fail("cannot map shared memory");
        auto* arena = static_cast<Arena*>(memory);
        if (fresh || arena->magic != kMagic) {
            initializeArena(*arena, launchNs);
        } else if (!hasLiveProcess(*arena)) {
            munmap(memory, kArenaBytes);
            unlink(g_arenaPath.c_str());
            close(fd);
            continue;
        }
        if (arena->processCount >= kMaxProcesses) refuseMore("processes", kMaxProcesses);
        SharedLock lock(arena->lock);
        processIndex = arena->processCount;
        Process& process = arena->processes[processIndex];
        beginProcess(process, processIndex);
        process.pid = getpid();
        process.startTime = processStartTime(process.pid);
        process.alive = 1;
        arena->processCount = processIndex + 1;
        lock.unlock();
        flock(fd, LOCK_UN);
        g_arenaFd = fd;
        return arena;
    }
}

uint32_t reserveProcess(Arena& arena, uint32_t parent) {
    uint32_t index = 0;
    // One that has left can be followed by another, unless it had streams, which the engine still knows.
    while (index < arena.processCount && !(arena.processes[index].isForked && !arena.processes[index].alive &&
                                           arena.processes[index].firstStream == kNone))
        index++;
    if (index == kMaxProcesses) {
        std::fprintf(stderr,
                     "rankscope virtual GPUs: a virtual job holds at most %u processes: one that was forked has no "
                     "virtual clock\n",
                     kMaxProcesses);
        return kNone;
    }
    Process& process = arena.processes[index];
    if (index == arena.processCount) {
        arena.processCount++;
        beginProcess(process, index);
    }
    process.firstThread = kNone;
    process.pid = 0;
    process.startTime = 0;
    process.rank = arena.processes[parent].rank;
    process.family = arena.processes[parent].family;
    process.isForked = 1;
    process.active = 0;
    process.endKeyCount = 0;
    process.alive = 1;
    return index;
}

void reopenArena() {
    g_arenaFd = open(g_arenaPath.c_str(), kOpenFlags);
}

const char* arenaPath() {
    return g_arenaPath.c_str();
}

Arena* joinArena(const char* path) {
    g_arenaPath = path;
    reopenArena();
    struct stat status;
    if (g_arenaFd < 0 || fstat(g_arenaFd, &status) != 0 || static_cast<uint64_t>(status.st_size) != kArenaBytes)
        return nullptr;
    void* memory = mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, g_arenaFd, 0);
    if (memory == MAP_FAILED || static_cast<Arena*>(memory)->magic != kMagic) return nullptr;
    return static_cast<Arena*>(memory);
}

void detachArena(Arena* arena, uint32_t processIndex) {
    flock(g_arenaFd, LOCK_EX);
    arena->processes[processIndex].alive = 0;
    if (!hasLiveProcess(*arena)) unlink(g_arenaPath.c_str());
    flock(g_arenaFd, LOCK_UN);
    // The mapping stays: threads of a process that is ending may still be inside a call.
}

/// A process counts as alive until its last thread is gone, even if its main thread has ended: its pipes stay open
/// until then, and who waits for its end sleeps on.
uint64_t processStartTime(int32_t pid) {
    // Fields of /proc/PID/stat as proc(5) numbers them.
    constexpr int kState = 3, kThreads = 20, kStart = 22;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    StatText text;
    const char* field = statBehindName(path, text);
    const bool hasMainEnded = field && (*field == 'Z' || *field == 'X');
    for (int number = kState; number < kStart && field; number++) {
        if (number == kThreads && hasMainEnded && std::strtoull(field, nullptr, 10) <= 1) return 0;
        field = std::strchr(field, ' ');
        if (field) field++;
    }
    return field ? std::strtoull(field, nullptr, 10) : 0;
}

char threadStateOf(int32_t pid, int32_t tid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    StatText text;
    const char* field = statBehindName(path, text);
    return field ? *field : 'X';
}

bool processLives(int32_t pid, uint64_t startTime) {
    if (pid == 0) return true;  // it is just being forked
    uint64_t now = processStartTime(pid);
    return now != 0 && now == startTime;
}

int64_t monotonicMs() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

void futexWait(std::atomic<uint32_t>& word, uint32_t expected, int timeoutMs) {
    timespec timeout{timeoutMs / 1000, (timeoutMs % 1000) * 1000000L};
    const int before = errno;  // whether a thread had to sleep is no business of the program's
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, expected, &timeout, nullptr, 0);
    errno = before;
}

void futexWake(std::atomic<uint32_t>& word, int count) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, count, nullptr, nullptr, 0);
}

}  // namespace rankscope::vgpu
