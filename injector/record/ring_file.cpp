// SPDX-License-Identifier: Apache-2.0
#include "injector/record/ring_file.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "injector/record/file_lease.h"
#include "injector/record/futex.h"

namespace rankscope::injector {
namespace {

// File systems (linux/magic.h) of this machine alone that write to a reserved page without asking for space again: on
// those that copy on writing (btrfs, ZFS) a full disk would be a SIGBUS, and of a network's the server may forget the
// file.
bool keepsWhatIsReserved(int fd) noexcept {
    constexpr uint32_t kExt = 0xef53, kXfs = 0x58465342, kTmpfs = 0x01021994, kOverlay = 0x794c7630;
    struct statfs info {};
    if (syscall(SYS_fstatfs, fd, &info) != 0) return false;
    const auto type = static_cast<uint32_t>(info.f_type);
    return type == kExt || type == kXfs || type == kTmpfs || type == kOverlay;
}

uint64_t ringBytes(uint32_t cellsPerRing) noexcept {
    return capture::kRingHeaderBytes + uint64_t{cellsPerRing} * capture::kCellBytes;
}

void* mapOwn(uint64_t bytes) noexcept {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    ::madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

/// Of space that is reserved. `flags`: MAP_POPULATE where nobody may wait for a page later.
void* mapShared(int fd, uint64_t offset, uint64_t bytes, int flags) noexcept {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, static_cast<off_t>(offset));
    if (memory == MAP_FAILED) return nullptr;
    ::madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

using Copy = bool (*)(void* to, const void* from, uint64_t bytes);

bool copyOwn(void* to, const void* from, uint64_t bytes) noexcept {
    std::memcpy(to, from, bytes);
    return true;
}

/// Copies within the process without touching `from` from here: where pages of it are gone the kernel says so.
bool copyOfFile(void* to, const void* from, uint64_t bytes) noexcept {
    const iovec into{to, bytes};
    const iovec source{const_cast<void*>(from), bytes};
    return syscall(SYS_process_vm_readv, ::getpid(), &into, 1, &source, 1, 0) == static_cast<long>(bytes);
}

/// A ring's header and the cells that are not drained.
bool copyUsed(void* to, const void* from, uint32_t cellsPerRing, Copy copy) noexcept {
    if (!copy(to, from, capture::kRingHeaderBytes)) return false;
    const auto& header = *static_cast<const capture::RingHeader*>(to);
    auto* cellsTo = static_cast<uint8_t*>(to) + capture::kRingHeaderBytes;
    const auto* cellsFrom = static_cast<const uint8_t*>(from) + capture::kRingHeaderBytes;
    const uint64_t used = std::min<uint64_t>(header.head - header.tail, cellsPerRing);
    const uint64_t begin = header.tail & (cellsPerRing - 1), first = std::min<uint64_t>(used, cellsPerRing - begin);
    const uint64_t at = begin * capture::kCellBytes;
    return copy(cellsTo + at, cellsFrom + at, first * capture::kCellBytes) &&
           copy(cellsTo, cellsFrom, (used - first) * capture::kCellBytes);
}

}  // namespace

uint64_t RingFile::offsetOfRing(uint32_t index) const noexcept {
    return capture::kRingFileHeaderBytes + index * ringBytes(m_header.cellsPerRing);
}

bool RingFile::open(const char* path, uint32_t cellsPerRing, int32_t pid, int64_t processStartNs) noexcept {
    Lock lock(m_mutex);
    if (!m_file.create(path, capture::OwnFile::Access::ours)) return false;
    m_header = {};
    std::memcpy(m_header.magic, capture::kRingMagic, sizeof m_header.magic);
    m_header.formatVersion = capture::kFormatVersion;
    m_header.endianMark = 0x01020304;
    m_header.pid = pid;
    m_header.cellsPerRing = cellsPerRing;
    m_header.unmapped = 1;
    m_header.processStartNs = processStartNs;
    m_isGone = m_isLent = m_isHeaderTold = false;
    m_tid = 0;
    if (::posix_fallocate(m_file.descriptor(), 0, capture::kRingFileHeaderBytes) != 0) {
        discardFileSizeSignal();
        m_file.closeAndUnlink();
        return false;
    }
    writeHeader(m_file.descriptor());
    return true;
}

void RingFile::map(int32_t tid) noexcept {
    Lock lock(m_mutex);
    const int fd = m_file.heldDescriptor();
    if (fd < 0 || !keepsWhatIsReserved(fd)) return;
    m_tid = tid;
    enter();
}

void RingFile::tend() noexcept {
    if (isMapped() || !m_file.isOpen()) return;
    Lock lock(m_mutex);
    enter();
    uint64_t bytes = 0;
    if (isMapped()) return;
    if (!m_isHeaderTold || (m_file.readSize(bytes) && bytes < sizeof m_header)) writeHeader(m_file.descriptor());
}

void RingFile::writeHeader(int fd) noexcept {
    m_isHeaderTold = fd >= 0 && ::pwrite(fd, &m_header, sizeof m_header, 0) == static_cast<ssize_t>(sizeof m_header);
    if (fd >= 0 && !m_isHeaderTold) discardFileSizeSignal();
}

bool RingFile::look() noexcept {
    if (!isMapped()) return false;
    Lock lock(m_mutex);
    const int fd = m_file.heldDescriptor();
    if (fd < 0) {
        const bool isCut = leave();
        writeHeader(m_file.descriptor());
        return isCut;
    }
    const FileLease::State lease = FileLease::state(fd);
    if (lease == FileLease::State::held) return false;
    if (lease == FileLease::State::readerWaits) {
        FileLease::giveBack(fd);
        m_isLent = true;
        return false;
    }
    uint64_t bytes = 0;
    if (std::exchange(m_isLent, false) && FileLease::take(fd, m_tid) && m_file.readSize(bytes) &&
        bytes >= offsetOfRing(m_header.ringCount))
        return false;
    const bool isCut = leave();
    writeHeader(fd);
    FileLease::giveBack(fd);
    return isCut;
}

// Each owning thread is outside its ring's memory or waits; one that a handler of the job's took out of the middle of
// it by longjmp is not waited for longer than kMostNs.
void RingFile::stopWriters() noexcept {
    constexpr int64_t kMostNs = 100'000'000, kPauseNs = 50'000;
    for (uint32_t i = 0; i < count(); ++i) m_rings[i].setPlace(Ring::Place::moving);
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0);
    std::atomic<uint32_t> nobody{0};
    // A kernel without it: a store has long become visible by then.
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) != 0) futexWait(nobody, 0, 20 * kPauseNs);
    int64_t waitedNs = 0;
    for (uint32_t i = 0; i < count(); ++i)
        for (; m_rings[i].isBeingWritten() && waitedNs < kMostNs; waitedNs += kPauseNs) futexWait(nobody, 0, kPauseNs);
}

// Puts other memory in the place of a ring's, with what is in that, and lets its thread go on.
bool RingFile::move(Ring& ring, From from, void* memory, bool& isCut) noexcept {
    const uint64_t bytes = ringBytes(m_header.cellsPerRing);
    if (!copyUsed(memory, ring.header(), m_header.cellsPerRing, from == From::own ? copyOwn : copyOfFile)) {
        ring.beginAgainIn(*static_cast<capture::RingHeader*>(memory));
        isCut = true;
    }
    if (::mremap(memory, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, ring.header()) == MAP_FAILED) return false;
    ring.setPlace(Ring::Place::here);
    return true;
}

// All memory is there before a thread is stopped, and each goes on when its own ring has moved.
bool RingFile::moveAll(From from, int fd, bool& isCut) noexcept {
    void* memory[kMaxRings];
    const uint64_t bytes = ringBytes(m_header.cellsPerRing);
    const uint32_t made = count();
    uint32_t mapped = 0, moved = 0;
    for (; mapped < made; ++mapped) {
        memory[mapped] = from == From::own ? mapShared(fd, offsetOfRing(mapped), bytes, MAP_POPULATE) : mapOwn(bytes);
        if (memory[mapped] == nullptr) break;
    }
    if (mapped == made && made != 0) {
        stopWriters();
        while (moved < made && move(m_rings[moved], from, memory[moved], isCut)) ++moved;
    }
    for (uint32_t i = moved; i < mapped; ++i) ::munmap(memory[i], bytes);
    return moved == made;
}

void RingFile::enter() noexcept {
    const int fd = m_tid == 0 || m_isGone || isMapped() ? -1 : m_file.descriptor();
    if (fd < 0 || !FileLease::take(fd, m_tid)) return;
    const uint32_t made = count();
    if (::posix_fallocate(fd, 0, static_cast<off_t>(offsetOfRing(made))) != 0) {
        discardFileSizeSignal();
        m_tid = 0;  // a disk that is full: it is not asked again
        return FileLease::giveBack(fd);
    }
    bool isCut = false;  // never of memory of our own
    const bool isWhole = moveAll(From::own, fd, isCut);
    m_isLent = false;
    m_isMapped.store(true, std::memory_order_relaxed);
    m_header.ringCount = made;
    m_header.unmapped = 0;
    if (isWhole) return writeHeader(fd);
    m_tid = 0;
    leave();
    FileLease::giveBack(fd);
}

bool RingFile::leave() noexcept {
    bool isCut = false;
    m_isGone = !moveAll(From::file, -1, isCut);
    if (m_isGone) {  // Nothing is recorded any more, and nobody touches the mappings again.
        stopWriters();
        for (uint32_t i = 0; i < count(); ++i) m_rings[i].setPlace(Ring::Place::gone);
        m_count.store(0, std::memory_order_release);
    }
    m_header.ringCount = 0;
    m_header.unmapped = 1;
    m_isMapped.store(false, std::memory_order_relaxed);
    return isCut || m_isGone;
}

bool RingFile::addRing() noexcept {
    const uint32_t index = m_count.load(std::memory_order_relaxed);
    if (index >= kMaxRings || m_isGone || !m_file.isOpen()) return false;
    const uint64_t bytes = ringBytes(m_header.cellsPerRing);
    // A descriptor that the job has closed has the next look leave the file.
    const int fd = isMapped() ? m_file.heldDescriptor() : -1;
    const bool hasSpace =
        fd < 0 || ::posix_fallocate(fd, static_cast<off_t>(offsetOfRing(index)), static_cast<off_t>(bytes)) == 0;
    void* memory = !hasSpace ? nullptr : fd >= 0 ? mapShared(fd, offsetOfRing(index), bytes, 0) : mapOwn(bytes);
    if (memory == nullptr) {
        discardFileSizeSignal();
        return false;
    }
    m_rings[index] = Ring{};
    m_rings[index].bind(static_cast<capture::RingHeader*>(memory),
                        static_cast<uint8_t*>(memory) + capture::kRingHeaderBytes, m_header.cellsPerRing);
    if (fd >= 0) {
        m_header.ringCount = index + 1;
        writeHeader(fd);
    }
    m_count.store(index + 1, std::memory_order_release);
    return true;
}

Ring* RingFile::acquire(uint32_t threadIndex, int32_t tid) noexcept {
    Lock lock(m_mutex);
    const uint32_t made = count();
    Ring* found = nullptr;
    for (uint32_t i = 0; i < made && found == nullptr; ++i)
        if (m_rings[i].state() == Ring::State::free) found = &m_rings[i];
    if (found == nullptr) {
        if (!addRing()) return nullptr;
        found = &m_rings[made];
    }
    found->adopt(threadIndex, tid);
    found->setState(Ring::State::owned);
    return found;
}

void RingFile::free(Ring& ring) noexcept {
    std::atomic_ref(ring.header()->lostRecords).store(0, std::memory_order_relaxed);
    ring.setState(Ring::State::free);
}

void RingFile::closeAndUnlink() noexcept {
    Lock lock(m_mutex);
    // The mappings stay: a thread of the job may still be inside a push. So does their lease.
    m_tid = 0;
    m_file.closeAndUnlink();
}

void RingFile::abandon() noexcept {
    m_file.close();
    m_tid = 0;
    m_isMapped.store(false, std::memory_order_relaxed);
    m_mutex.renew();
    m_count.store(0, std::memory_order_relaxed);
}

}  // namespace rankscope::injector
