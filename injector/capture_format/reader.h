// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "injector/capture_format/block_scanner.h"
#include "injector/capture_format/detail_reader.h"
#include "injector/capture_format/fold_decoder.h"
#include "injector/capture_format/fold_records.h"
#include "injector/capture_format/reader_loss.h"
#include "injector/capture_format/record_cursor.h"
#include "injector/capture_format/record_view.h"
#include "injector/capture_format/ring_reader.h"
#include "injector/capture_format/since_filter.h"

namespace rankscope::capture {

/// The file is no capture file at all, or cannot be opened. Says file, offset and cause.
class CaptureError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Reads a capture file from front to back, then the .detail files of light mode, then what the .ring file of the same
/// name holds when the process died. Of FoldRecords it delivers the records that they stand for.
///
///     CaptureReader reader("capture/node1.4711.99.cap");
///     while (const RecordView* record = reader.next()) {
///         if (record->type() == RecordType::ncclCall) use(record->as<NcclCallRecord>());
///     }
///     for (const ReaderLoss& loss : reader.losses()) …
///
/// Whatever the bytes are, next() ends, memory stays below a few MiB, and what could not be read is in losses(),
/// complete once next() has returned null. Not thread-safe; one reader per file.
class CaptureReader {
  public:
    /// Throws CaptureError.
    explicit CaptureReader(std::string path);

    /// Before the first next(): reads what the process has written and neither its rings nor its .detail files. Of one
    /// that lives these go on while the file is read, so that what lies between would be missing in the middle.
    void leaveOutRings();

    const FileHeader& header() const { return m_header; }
    const std::string& path() const { return m_path; }

    /// The next record of a known type, or null at the end. Valid until the next call.
    const RecordView* next();

    const std::vector<ReaderLoss>& losses() const { return m_losses.rows(); }
    /// Records delivered so far.
    uint64_t recordCount() const { return m_recordCount; }
    /// Records of types this version does not know; also a loss.
    uint64_t unknownRecords() const { return m_unknownRecords; }
    /// Newest timestamp a source is known to have delivered, by Source; 0 none. Complete at the end.
    int64_t highWaterNs(Source source) const;

  private:
    bool nextRun();
    bool nextBlock();
    bool nextDetail();
    bool nextRing();
    bool nextFolded();
    void beginFold();
    void noteLost(uint32_t threadIndex, uint64_t lostRecords);
    void finish();

    std::string m_path;
    FileHeader m_header{};
    LossList m_losses;
    std::unique_ptr<BlockScanner> m_blocks;
    std::unique_ptr<DetailReader> m_details;
    std::unique_ptr<RingReader> m_rings;
    std::unique_ptr<SinceFilter> m_filter;
    FoldDecoder m_folds;
    FoldRecords m_foldRecords;
    RecordCursor m_block;  ///< of the capture file, where a FoldRecord of it is being told
    bool m_folding = false;
    bool m_hasDetail = false;  ///< a record of a .detail file came, beside those in front
    bool m_isDetail = false;   ///< the run is of a .detail file or a ring beside one
    RecordCursor m_cursor;
    RecordView m_view;
    uint64_t m_runOffset = 0;
    const uint8_t* m_runData = nullptr;
    bool m_hasRings = true;
    bool m_finished = false;
    uint64_t m_recordCount = 0;
    uint64_t m_unknownRecords = 0;
    uint64_t m_toldLost = 0;                      ///< by LossRecords of kind ringFull
    std::map<uint32_t, uint64_t> m_lostByThread;  ///< by block headers and rings
    int64_t m_highWaterNs[8] = {};
};

}  // namespace rankscope::capture
