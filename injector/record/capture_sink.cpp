// SPDX-License-Identifier: Apache-2.0
#include "injector/record/capture_sink.h"

#include <algorithm>
#include <atomic>

#include "injector/capture_format/record_traits.h"

namespace rankscope::injector {

using capture::AppendResult;
using capture::kCellBytes;
using capture::LossKind;
using capture::Source;

namespace {

uint64_t progressIn(const uint8_t* records, size_t bytes) noexcept {
    uint64_t count = 0;
    for (size_t at = 0; at + kCellBytes <= bytes;) {
        if (capture::isProgress(records + at)) ++count;
        at += (records[at + 1] == 0 ? 1 : records[at + 1]) * kCellBytes;
    }
    return count;
}

}  // namespace

bool CaptureSink::open(const char* path, capture::FileHeader& header, uint64_t maxBytes) noexcept {
    Lock lock(m_mutex);
    const bool opened = m_writer.open(path, header, maxBytes);
    if (!opened) discardFileSizeSignal();
    return opened;
}

void CaptureSink::handTo(const Taker& taker) noexcept {
    Lock lock(m_mutex);
    m_taker = taker;
}

void CaptureSink::finishTaker() noexcept {
    Lock lock(m_mutex);
    if (m_taker.self != nullptr) m_taker.finish(m_taker.self);
}

void CaptureSink::handOver(Ring& ring, uint64_t tail, uint64_t head) noexcept {
    uint8_t* const record = m_taken;
    const uint32_t thread = ring.header()->threadIndex;
    for (uint64_t position = tail; position < head;) {
        std::memcpy(record, ring.cellAt(position), kCellBytes);
        if (record[1] == 0) record[1] = 1;
        for (size_t i = 1; i < record[1]; ++i)
            std::memcpy(record + i * kCellBytes, ring.cellAt(position + i), kCellBytes);
        position += record[1];
        m_taker.take(m_taker.self, thread, record, position);
    }
    m_taker.endOfRing(m_taker.self);
}

void CaptureSink::writeTaken(void* sink, uint32_t thread, const void* records, size_t bytes, uint32_t recordCount,
                             int64_t lastNs) noexcept {
    auto& self = *static_cast<CaptureSink*>(sink);
    capture::BlockInfo info;
    info.threadIndex = thread;
    info.recordCount = recordCount;
    info.highWaterNs = lastNs;
    self.noteResult(self.m_writer.append(info, records, bytes), Source::hooks, recordCount, lastNs);
}

void CaptureSink::countTakersLoss(void* sink, LossKind kind, uint64_t count, int64_t timeNs) noexcept {
    discardFileSizeSignal();
    static_cast<CaptureSink*>(sink)->countLossLocked(Source::hooks, kind, count, timeNs);
}

void CaptureSink::tellWatchers() noexcept {
    Lock lock(m_mutex);
    tellWatchersLocked();
}

void CaptureSink::tellWatchersLocked() noexcept {
    if (m_watch == m_toldWatch) return;
    if (!m_writer.tell(m_watch)) return discardFileSizeSignal();
    m_toldWatch = m_watch;
}

void CaptureSink::noteResult(AppendResult result, Source source, uint32_t records, int64_t timeNs) noexcept {
    if (result == AppendResult::sizeCap) countLossLocked(source, LossKind::sizeCap, records, timeNs);
    if (result == AppendResult::ioError) discardFileSizeSignal();
    if (result == AppendResult::ioError) countLossLocked(source, LossKind::ioError, records, timeNs);
}

bool CaptureSink::append(Source source, const void* records, size_t bytes, uint32_t recordCount,
                         int64_t highWaterNs) noexcept {
    Lock lock(m_mutex);
    m_watch.progress += progressIn(static_cast<const uint8_t*>(records), bytes);
    capture::BlockInfo info;
    info.source = source;
    info.recordCount = recordCount;
    info.highWaterNs = highWaterNs;
    if (highWaterNs > m_highWaterNs) m_highWaterNs = highWaterNs;
    // Words about the capture itself still go in when the job's own records no longer fit.
    info.urgent = source == Source::injector;
    const AppendResult result = m_writer.append(info, records, bytes);
    noteResult(result, source, recordCount, highWaterNs);
    return result == AppendResult::ok;
}

void CaptureSink::drain(Ring& ring, uint64_t& toldLost) noexcept {
    const uint64_t lost = ring.lostRecords();
    const uint64_t head = ring.committedHead();
    const uint64_t tail = ring.tail();
    Lock lock(m_mutex);
    if (lost > toldLost) {
        countLossLocked(Source::hooks, LossKind::ringFull, lost - toldLost,
                        std::atomic_ref(ring.header()->lostLastNs).load(std::memory_order_relaxed));
        toldLost = lost;
    }
    if (head == tail) return;
    capture::BlockInfo info;
    info.threadIndex = ring.header()->threadIndex;
    info.lostRecords = lost;
    uint64_t progress = 0;
    for (uint64_t position = tail; position < head;) {
        alignas(8) uint8_t record[capture::kMaxTimedCells * kCellBytes] = {};
        std::memcpy(record, ring.cellAt(position), kCellBytes);
        const uint8_t cells = record[1] == 0 ? 1 : record[1];
        for (size_t i = 1; i < std::min<size_t>(cells, capture::kMaxTimedCells); ++i)
            std::memcpy(record + i * kCellBytes, ring.cellAt(position + i), kCellBytes);
        const int64_t time = capture::recordTimeNs(record);
        if (time > info.highWaterNs) info.highWaterNs = time;
        if (capture::isProgress(record)) ++progress;
        ++info.recordCount;
        position += cells;
    }
    m_watch.progress += progress;
    m_ringRecords += info.recordCount;
    if (info.highWaterNs > m_highWaterNs) m_highWaterNs = info.highWaterNs;
    if (m_taker.self != nullptr) {
        handOver(ring, tail, head);
        return ring.release(head);
    }
    const uint64_t cells = head - tail;
    const uint64_t first = cells < ring.untilWrap(tail) ? cells : ring.untilWrap(tail);
    ring.announce(head, m_writer.nextSequence());
    const AppendResult result = m_writer.append(info, ring.cellAt(tail), first * kCellBytes, ring.cellAt(tail + first),
                                                (cells - first) * kCellBytes);
    noteResult(result, Source::hooks, info.recordCount, info.highWaterNs);
    ring.release(head);
}

void CaptureSink::countLoss(Source source, LossKind kind, uint64_t count, int64_t timeNs) noexcept {
    Lock lock(m_mutex);
    countLossLocked(source, kind, count, timeNs);
}

void CaptureSink::countLossLocked(Source source, LossKind kind, uint64_t count, int64_t timeNs) noexcept {
    const auto row = static_cast<size_t>(source);
    const auto column = static_cast<size_t>(kind);
    if (row >= kSources || column >= kKinds || count == 0) return;
    Loss& loss = m_losses[row][column];
    if (loss.count == 0) loss.firstNs = timeNs;
    loss.lastNs = timeNs;
    loss.count += count;
}

void CaptureSink::tellLosses() noexcept {
    Lock lock(m_mutex);
    tellLossesLocked();
}

void CaptureSink::tellLossesLocked() noexcept {
    capture::LossRecord records[kSources * kKinds];
    uint32_t count = 0;
    for (size_t source = 0; source < kSources; ++source)
        for (size_t kind = 0; kind < kKinds; ++kind) {
            const Loss& loss = m_losses[source][kind];
            if (loss.count == 0) continue;
            capture::LossRecord record{};
            record.head = {capture::RecordType::loss, 1, static_cast<uint16_t>(kind)};
            record.source = static_cast<Source>(source);
            record.firstNs = loss.firstNs;
            record.lastNs = loss.lastNs;
            record.count = loss.count;
            records[count++] = record;
        }
    if (count == 0) return;
    capture::BlockInfo info;
    info.source = Source::injector;
    info.recordCount = count;
    info.urgent = true;
    if (m_writer.append(info, records, count * sizeof records[0]) != AppendResult::ok) return discardFileSizeSignal();
    for (auto& row : m_losses)
        for (Loss& loss : row) loss = Loss{};
}

void CaptureSink::close() noexcept {
    Lock lock(m_mutex);
    tellLossesLocked();
    tellWatchersLocked();
    m_writer.close();
}

void CaptureSink::abandon() noexcept {
    m_mutex.renew();
    m_writer.abandon();
    m_watch = m_toldWatch = {};
    m_taker = {};
    m_ringRecords = 0;
    m_highWaterNs = 0;
    for (auto& row : m_losses)
        for (Loss& loss : row) loss = Loss{};
}

}  // namespace rankscope::injector
