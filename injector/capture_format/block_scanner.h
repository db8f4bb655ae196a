// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "injector/capture_format/reader_loss.h"
#include "injector/capture_format/records.h"

namespace rankscope::capture {

/// Steps over the blocks of an open capture file. Only blocks whose checksums hold come out; everything else becomes a
/// loss. Memory: one block (1 MiB) and one search window.
class BlockScanner {
  public:
    /// A block that the file ends inside of; also a loss of kind tornTail at this offset.
    struct TornBlock {
        uint64_t offset;
        uint64_t sequence;
    };

    /// Takes the descriptor; `path` is for messages.
    BlockScanner(int fd, std::string path, uint64_t firstBlockOffset, LossList& losses);
    ~BlockScanner();
    BlockScanner(const BlockScanner&) = delete;
    BlockScanner& operator=(const BlockScanner&) = delete;

    /// False at the end of the file.
    bool next();

    const BlockHeader& header() const { return m_header; }
    const std::vector<uint8_t>& payload() const { return m_payload; }
    uint64_t blockOffset() const { return m_blockOffset; }
    /// One more than the highest sequence number seen: blocks below it were written.
    uint64_t sequenceEnd() const { return m_sequenceEnd; }
    /// Complete once next() has returned false.
    const std::optional<TornBlock>& torn() const { return m_torn; }

  private:
    size_t readAt(uint64_t offset, void* into, size_t bytes) const;
    bool readHeader(uint64_t offset, BlockHeader& header) const;
    /// Goes to the next header behind m_offset; false when there is none. `told`: the bytes up to the file's end are a
    /// loss already.
    bool resync(bool told = false);
    std::string at(uint64_t offset) const;
    /// Counts what a header made us read in vain; false when it is enough.
    bool mayGoOn(uint64_t begin, uint64_t bytes);

    int m_fd;
    std::string m_path;
    uint64_t m_size = 0;
    uint64_t m_offset;
    uint64_t m_blockOffset = 0;
    uint64_t m_sequenceEnd = 0;
    uint64_t m_readInVain = 0;
    std::optional<TornBlock> m_torn;
    BlockHeader m_header{};
    std::vector<uint8_t> m_payload;
    LossList& m_losses;
};

}  // namespace rankscope::capture
