// SPDX-License-Identifier: Apache-2.0
#include "injector/record/ring_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "injector/capture_format/own_file.h"

namespace rankscope::injector {
namespace {

// File systems whose files a server keeps, or a program: linux/magic.h, and statfs(2) and the sources of those that
// are not part of the kernel.
bool isRemote(int fd) noexcept {
    constexpr uint32_t kNfs = 0x6969, kSmb = 0x517b, kSmb2 = 0xfe534d42, kCifs = 0xff534d42, kCeph = 0x00c36400,
                       kAfs = 0x5346414f, kFuse = 0x65735546, k9p = 0x01021997, kOcfs2 = 0x7461636f,
                       kLustre = 0x0bd00bd0, kGpfs = 0x47504653, kBeeGfs = 0x19830326;
    struct statfs info {};
    if (syscall(SYS_fstatfs, fd, &info) != 0) return false;
    const auto type = static_cast<uint32_t>(info.f_type);
    for (const uint32_t remote : {kNfs, kSmb, kSmb2, kCifs, kCeph, kAfs, kFuse, k9p, kOcfs2, kLustre, kGpfs, kBeeGfs})
        if (type == remote) return true;
    return false;
}

uint64_t ringBytes(uint32_t cellsPerRing) noexcept {
    return capture::kRingHeaderBytes + uint64_t{cellsPerRing} * capture::kCellBytes;
}

/// Memory of our own, in place of what was at `place`, or anywhere (null).
void* mapOwn(void* place, uint64_t bytes) noexcept {
    void* memory = ::mmap(place, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | (place != nullptr ? MAP_FIXED : 0), -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    ::madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

void* mapShared(int fd, uint64_t offset, uint64_t bytes) noexcept {
    if (::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) return nullptr;
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (memory == MAP_FAILED) return nullptr;
    ::madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

}  // namespace

void* RingFile::reserve(uint64_t offset, uint64_t bytes) noexcept {
    return m_isMapped ? mapShared(m_file.descriptor(), offset, bytes) : mapOwn(nullptr, bytes);
}

bool RingFile::open(const char* path, uint32_t cellsPerRing, int32_t pid, int64_t processStartNs,
                    bool mapped) noexcept {
    Lock lock(m_mutex);
    if (!m_file.create(path, capture::OwnFile::Access::ours)) return false;
    m_isMapped = mapped && !isRemote(m_file.descriptor());
    m_header = static_cast<capture::RingFileHeader*>(reserve(0, capture::kRingFileHeaderBytes));
    if (m_header == nullptr) {
        discardFileSizeSignal();
        m_file.closeAndUnlink();
        return false;
    }
    m_cellsPerRing = cellsPerRing;
    std::memcpy(m_header->magic, capture::kRingMagic, sizeof m_header->magic);
    m_header->formatVersion = capture::kFormatVersion;
    m_header->endianMark = 0x01020304;
    m_header->pid = pid;
    m_header->cellsPerRing = cellsPerRing;
    m_header->unmapped = m_isMapped ? 0 : 1;
    m_header->processStartNs = processStartNs;
    tellWatchers();
    return true;
}

bool RingFile::leaveIfCut() noexcept {
    Lock lock(m_mutex);
    if (!m_isMapped || m_header == nullptr || !m_file.isOpen()) return false;
    const uint64_t whole = capture::kRingFileHeaderBytes + count() * ringBytes(m_cellsPerRing);
    // A file that only lost its name, or that the job gave our descriptor away of, is whole in our memory.
    if (m_file.descriptor() < 0 || m_file.size() >= whole) return false;
    mapOwn(m_header, capture::kRingFileHeaderBytes);
    for (uint32_t i = 0; i < count(); ++i) mapOwn(m_rings[i].header(), ringBytes(m_cellsPerRing));
    m_isMapped = false;
    return true;
}

void RingFile::tellWatchers() noexcept {
    if (m_isMapped || m_header == nullptr) return;
    const int fd = m_file.descriptor();
    if (fd >= 0) [[maybe_unused]]
        const ssize_t ignored = ::pwrite(fd, m_header, sizeof *m_header, 0);
}

bool RingFile::addRing() noexcept {
    const uint32_t index = m_count.load(std::memory_order_relaxed);
    if (index >= kMaxRings || (m_isMapped && m_file.descriptor() < 0)) return false;
    const uint64_t bytes = ringBytes(m_cellsPerRing);
    void* memory = reserve(capture::kRingFileHeaderBytes + index * bytes, bytes);
    if (memory == nullptr) {
        discardFileSizeSignal();
        return false;
    }
    m_rings[index] = Ring{};
    m_rings[index].bind(static_cast<capture::RingHeader*>(memory),
                        static_cast<uint8_t*>(memory) + capture::kRingHeaderBytes, m_cellsPerRing);
    if (m_isMapped) std::atomic_ref(m_header->ringCount).store(index + 1, std::memory_order_release);
    m_count.store(index + 1, std::memory_order_release);
    return true;
}

RingState RingFile::state(const Ring& ring) noexcept {
    return static_cast<RingState>(std::atomic_ref(ring.header()->state).load(std::memory_order_acquire));
}

Ring* RingFile::acquire(uint32_t threadIndex, int32_t tid) noexcept {
    Lock lock(m_mutex);
    const uint32_t made = count();
    Ring* found = nullptr;
    for (uint32_t i = 0; i < made && found == nullptr; ++i)
        if (state(m_rings[i]) == RingState::free) found = &m_rings[i];
    if (found == nullptr) {
        if (!addRing()) return nullptr;
        found = &m_rings[made];
    }
    found->adopt(threadIndex, tid);
    std::atomic_ref(found->header()->state).store(static_cast<uint32_t>(RingState::owned), std::memory_order_release);
    return found;
}

void RingFile::retire(Ring& ring) noexcept {
    std::atomic_ref(ring.header()->state).store(static_cast<uint32_t>(RingState::ended), std::memory_order_release);
}

void RingFile::free(Ring& ring) noexcept {
    std::atomic_ref(ring.header()->lostRecords).store(0, std::memory_order_relaxed);
    std::atomic_ref(ring.header()->state).store(static_cast<uint32_t>(RingState::free), std::memory_order_release);
}

void RingFile::closeAndUnlink() noexcept {
    // The mappings stay: a thread of the job may still be inside a push.
    m_file.closeAndUnlink();
}

void RingFile::abandon() noexcept {
    m_file.close();
    m_header = nullptr;
    m_mutex.renew();
    m_count.store(0, std::memory_order_relaxed);
}

}  // namespace rankscope::injector
