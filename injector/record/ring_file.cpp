// SPDX-License-Identifier: Apache-2.0
#include "injector/record/ring_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "injector/capture_format/own_file.h"

namespace rankscope::injector {
namespace {

void* mapShared(int fd, uint64_t offset, uint64_t bytes) noexcept {
    if (::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) return nullptr;
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (memory == MAP_FAILED) return nullptr;
    ::madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

}  // namespace

bool RingFile::open(const char* path, uint32_t cellsPerRing, int32_t pid, int64_t processStartNs) noexcept {
    Lock lock(m_mutex);
    if (!m_file.create(path)) return false;
    m_header = static_cast<capture::RingFileHeader*>(mapShared(m_file.descriptor(), 0, capture::kRingFileHeaderBytes));
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
    m_header->processStartNs = processStartNs;
    return true;
}

bool RingFile::addRing() noexcept {
    const uint32_t index = m_count.load(std::memory_order_relaxed);
    const int fd = m_file.descriptor();
    if (fd < 0 || index >= kMaxRings) return false;
    const uint64_t bytes = capture::kRingHeaderBytes + uint64_t{m_cellsPerRing} * capture::kCellBytes;
    void* memory = mapShared(fd, capture::kRingFileHeaderBytes + index * bytes, bytes);
    if (memory == nullptr) {
        discardFileSizeSignal();
        return false;
    }
    m_rings[index] = Ring{};
    m_rings[index].bind(static_cast<capture::RingHeader*>(memory),
                        static_cast<uint8_t*>(memory) + capture::kRingHeaderBytes, m_cellsPerRing);
    std::atomic_ref(m_header->ringCount).store(index + 1, std::memory_order_release);
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
