// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rankscope::capture {

/// What a reader could not read. Never an exception: the readable part is still worth having.
enum class ReaderLossKind : uint8_t {
    tornTail,         ///< the file ends inside a block; count: blocks
    corruptHeader,    ///< bytes that are no block; count: such places, however long (the message tells the bytes)
    corruptPayload,   ///< the checksum of a block's payload is wrong; count: blocks (the message tells the records they
                      ///< claimed)
    malformedRecord,  ///< a record that contradicts itself inside an intact block; count: records
    sequenceGap,      ///< blocks are missing; count: blocks
    repeatedBlock,    ///< a block came again or out of order; count: blocks, which were skipped
    unknownRecord,    ///< record types of a newer version; count: records
    ringFull,         ///< records the job's threads could not store and no LossRecord tells of; count: records
    ring,             ///< the .ring file beside the capture file is unreadable or damaged; count: rings
};

struct ReaderLoss {
    ReaderLossKind kind;
    uint64_t offset;  ///< in the file named by the message, of the first case
    uint64_t count;
    std::string message;  ///< names the file, the offset and the cause
};

const char* readerLossName(ReaderLossKind kind);

/// Collects losses. After kMaxRows rows further ones of a kind are added to the last of that kind, so that a hostile
/// file cannot make it grow.
class LossList {
  public:
    static constexpr size_t kMaxRows = 256;
    void add(ReaderLossKind kind, uint64_t offset, uint64_t count, const std::string& message);
    /// Takes the row of that kind and offset back: what seemed lost was found whole in another place.
    void takeBack(ReaderLossKind kind, uint64_t offset);
    const std::vector<ReaderLoss>& rows() const { return m_rows; }

  private:
    std::vector<ReaderLoss> m_rows;
};

}  // namespace rankscope::capture
