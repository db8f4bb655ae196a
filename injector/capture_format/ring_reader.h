// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "injector/capture_format/reader_loss.h"
#include "injector/capture_format/records.h"

namespace rankscope::capture {

/// Reads what the rings of a dead process still hold, one ring at a time. Made for the .ring file beside a capture
/// file; a missing file is an empty one. Memory: one ring.
class RingReader {
  public:
    /// `sequenceEnd`: blocks of the capture file with a lower sequence number exist, so what they hold is not read
    /// again. `ringEnds`: how far .detail files hold the ring of a thread. `processStartNs` of the capture file's
    /// header: a ring of another process is refused.
    RingReader(std::string path, int64_t processStartNs, uint64_t sequenceEnd,
               const std::map<uint32_t, uint64_t>& ringEnds, LossList& losses);
    ~RingReader();
    RingReader(const RingReader&) = delete;
    RingReader& operator=(const RingReader&) = delete;

    /// Steps to the next ring that holds anything or lost anything.
    bool next();

    const std::vector<uint8_t>& cells() const { return m_cells; }
    uint32_t threadIndex() const { return m_threadIndex; }
    uint64_t lostRecords() const { return m_lostRecords; }
    uint64_t ringOffset() const { return m_ringOffset; }
    /// Whether a ring delivered by now holds all that block `sequence` was to hold: the process died while it wrote it.
    bool holdsBlock(uint64_t sequence) const { return m_unwritten == sequence; }
    const std::string& path() const { return m_path; }

  private:
    std::string m_path;
    LossList& m_losses;
    int m_fd = -1;
    uint64_t m_sequenceEnd;
    std::map<uint32_t, uint64_t> m_ringEnds;
    uint32_t m_cellsPerRing = 0;
    uint32_t m_ringCount = 0;
    uint32_t m_index = 0;
    uint64_t m_ringOffset = 0;
    uint32_t m_threadIndex = kNoThread;
    uint64_t m_lostRecords = 0;
    std::optional<uint64_t> m_unwritten;  ///< the block that a ring has announced and the file does not hold
    std::vector<uint8_t> m_cells;
};

}  // namespace rankscope::capture
