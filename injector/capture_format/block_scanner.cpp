// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/block_scanner.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "injector/capture_format/crc32c.h"

namespace rankscope::capture {
namespace {

constexpr size_t kSearchWindow = 256u << 10;

bool isHeader(const BlockHeader& header) {
    return header.magic == kBlockMagic && header.payloadBytes <= kMaxBlockPayloadBytes &&
           header.payloadBytes % kCellBytes == 0 &&
           header.headerCrc == crc32c(&header, offsetof(BlockHeader, headerCrc));
}

}  // namespace

BlockScanner::BlockScanner(int fd, std::string path, uint64_t firstBlockOffset, LossList& losses)
    : m_fd(fd), m_path(std::move(path)), m_offset(firstBlockOffset), m_losses(losses) {
    struct stat info {};
    if (::fstat(fd, &info) == 0 && info.st_size > 0) m_size = static_cast<uint64_t>(info.st_size);
}

BlockScanner::~BlockScanner() {
    ::close(m_fd);
}

std::string BlockScanner::at(uint64_t offset) const {
    return m_path + ": byte " + std::to_string(offset) + ": ";
}

size_t BlockScanner::readAt(uint64_t offset, void* into, size_t bytes) const {
    size_t done = 0;
    while (done < bytes) {
        const ssize_t got =
            ::pread(m_fd, static_cast<char*>(into) + done, bytes - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += static_cast<size_t>(got);
    }
    return done;
}

bool BlockScanner::readHeader(uint64_t offset, BlockHeader& header) const {
    return readAt(offset, &header, sizeof header) == sizeof header && isHeader(header);
}

bool BlockScanner::resync(bool told) {
    // Search for the magic byte by byte: after an insertion or a deletion the blocks are no longer aligned.
    const uint64_t from = m_offset;
    std::vector<uint8_t> window(kSearchWindow);
    uint64_t position = m_offset + 1;
    while (position + sizeof(BlockHeader) <= m_size) {
        const size_t got = readAt(position, window.data(), window.size());
        if (got < sizeof(BlockHeader)) break;
        const size_t candidates = got - sizeof(BlockHeader) + 1;
        for (size_t i = 0; i < candidates; ++i) {
            const auto* hit = static_cast<const uint8_t*>(std::memchr(window.data() + i, 'R', candidates - i));
            if (hit == nullptr) break;
            i = static_cast<size_t>(hit - window.data());
            BlockHeader header;
            std::memcpy(&header, hit, sizeof header);
            if (!isHeader(header)) continue;
            m_offset = position + i;
            if (told) return true;
            m_losses.add(ReaderLossKind::corruptHeader, from, 1,
                         at(from) + std::to_string(m_offset - from) + " bytes are no block, skipped to the next one");
            return true;
        }
        position += candidates;
    }
    m_offset = m_size;
    if (told) return false;
    const bool isTorn = m_size - from < sizeof(BlockHeader);
    if (isTorn) m_torn = {from, m_sequenceEnd};
    m_losses.add(isTorn ? ReaderLossKind::tornTail : ReaderLossKind::corruptHeader, from, 1,
                 at(from) + "the last " + std::to_string(m_size - from) + " bytes are no whole block");
    return false;
}

// A header of 64 bytes may claim 1 MiB of payload, the next one, 64 bytes on, too. Damage leaves a few such, at worst
// one in place of each block; a file of nothing else would be read 16,384 times.
bool BlockScanner::mayGoOn(uint64_t begin, uint64_t bytes) {
    constexpr uint64_t kTimesTheFile = 4, kOfSmallFiles = 16 * kMaxBlockPayloadBytes;
    m_readInVain += bytes;
    if (m_readInVain <= kTimesTheFile * m_size + kOfSmallFiles) return true;
    m_losses.add(ReaderLossKind::corruptHeader, begin, 1,
                 at(begin) + "too many headers claim what is not there: the last " + std::to_string(m_size - begin) +
                     " bytes are not read");
    m_offset = m_size;
    return false;
}

bool BlockScanner::next() {
    while (m_offset < m_size) {
        BlockHeader header;
        if (!readHeader(m_offset, header)) {
            if (!resync()) return false;
            continue;
        }
        const uint64_t begin = m_offset;
        m_payload.resize(header.payloadBytes);
        const size_t got = readAt(begin + sizeof header, m_payload.data(), m_payload.size());
        if (got < m_payload.size()) {
            m_losses.add(
                ReaderLossKind::tornTail, begin, 1,
                at(begin) + "the file ends inside a block of " + std::to_string(header.recordCount) + " records");
            m_sequenceEnd = std::max<uint64_t>(m_sequenceEnd, header.sequence);  // this one was not finished
            m_torn = {begin, header.sequence};
            m_offset = begin + 1;  // a header of an older, longer write may lie behind
            if (!mayGoOn(begin, got) || !resync(true)) return false;
            continue;
        }
        if (crc32c(m_payload.data(), m_payload.size()) != header.payloadCrc) {
            m_losses.add(
                ReaderLossKind::corruptPayload, begin, 1,
                at(begin) + "the checksum of a block with " + std::to_string(header.recordCount) + " records is wrong");
            // The length may be the lie, so go on right behind the header instead of behind the payload, unless a block
            // starts there.
            BlockHeader following;
            const uint64_t behind = begin + sizeof header + header.payloadBytes;
            if (behind == m_size || readHeader(behind, following)) {
                m_offset = behind;
                m_sequenceEnd = std::max<uint64_t>(m_sequenceEnd, uint64_t{header.sequence} + 1);
            } else {
                m_offset = begin + sizeof header;
                if (!mayGoOn(begin, got) || !resync()) return false;
            }
            continue;
        }
        m_offset = begin + sizeof header + header.payloadBytes;
        if (header.sequence < m_sequenceEnd) {
            m_losses.add(ReaderLossKind::repeatedBlock, begin, 1,
                         at(begin) + "block " + std::to_string(header.sequence) + " comes again");
            continue;
        }
        if (header.sequence > m_sequenceEnd) {
            const uint64_t missing = header.sequence - m_sequenceEnd;
            m_losses.add(ReaderLossKind::sequenceGap, begin, missing,
                         at(begin) + std::to_string(missing) + " blocks are missing before this one");
        }
        m_sequenceEnd = uint64_t{header.sequence} + 1;
        m_header = header;
        m_blockOffset = begin;
        return true;
    }
    return false;
}

}  // namespace rankscope::capture
