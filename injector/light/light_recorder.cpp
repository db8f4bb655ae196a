// SPDX-License-Identifier: Apache-2.0
#include "injector/light/light_recorder.h"

#include <cstring>

#include "injector/capture_format/record_traits.h"

namespace rankscope::injector {

using capture::kCellBytes;
using capture::RecordType;

namespace {

/// What later records mean something by, and the reader needs as long as the file lives.
bool lasts(RecordType type) noexcept {
    switch (type) {
        case RecordType::string:
        case RecordType::metadata:
        case RecordType::thread:
        case RecordType::communicator:
        case RecordType::communicatorEnd:
        case RecordType::stream:
        case RecordType::device:
        case RecordType::loss:
        case RecordType::status:
        case RecordType::processEnd:
        case RecordType::rankIdentity:
        case RecordType::machineLink:
            return true;
        default:
            return false;
    }
}

/// Stamps of the device may be of another clock, and the proxy's come late.
bool isHostStamp(RecordType type) noexcept {
    return type != RecordType::pluginKernelChannel && type != RecordType::pluginProxyOp;
}

}  // namespace

void RecordBuffer::add(const uint8_t* record, size_t length) noexcept {
    std::memcpy(bytes + used, record, length);
    used += length;
    ++records;
    const int64_t ns = capture::recordTimeNs(record);
    if (ns > lastNs) lastNs = ns;
}

void LightRecorder::begin(LightTables& tables, const Target& target, int64_t ringNs, const char* base,
                          const capture::FileHeader& header) noexcept {
    m_tables = &tables;
    m_target = target;
    m_ringNs = ringNs;
    m_newestNs = INT64_MIN;
    m_tables->folder.begin(&LightRecorder::writeFold, this, target.slowSteps, target.stepBegins, target.countLoss,
                           target.to);
    m_files.begin(base, header);
    rotate();
}

void LightRecorder::take(uint32_t thread, const uint8_t* record, uint64_t ringEnd) noexcept {
    capture::RecordHead head;
    std::memcpy(&head, record, sizeof head);
    const size_t bytes = size_t{head.cells} * kCellBytes;
    RecordBuffer& buffer = lasts(head.type) ? m_tables->lasting : m_tables->detail;
    if (!buffer.hasRoom(bytes)) flush();
    m_thread = thread;
    m_ringEnd = ringEnd;
    buffer.add(record, bytes);
    m_tables->folder.take(thread, record);
    if (!isHostStamp(head.type)) return;
    const int64_t ns = capture::recordTimeNs(record);
    if (ns <= m_newestNs || ns == 0) return;
    m_newestNs = ns;
    if (m_rotateAtNs == INT64_MAX) m_rotateAtNs = ns + m_ringNs;
    if (ns >= m_rotateAtNs) rotate();
}

void LightRecorder::endOfRing() noexcept {
    flush();
    if (m_target.hostIsAt != nullptr && m_newestNs != INT64_MIN) m_target.hostIsAt(m_target.stepBegins.to, m_newestNs);
    if (m_files.bytesInNewest() >= kMostFileBytes) rotate();
}

void LightRecorder::rotate() noexcept {
    flush();
    // What began before the older of the two files that will be is told by the capture file alone from now on. A call
    // may wait for its peers longer than a short ring is: then a process that is killed meanwhile leaves no trace of
    // it.
    const int64_t sinceNs = m_files.newestSinceNs();
    const int64_t longAgoNs = m_newestNs == INT64_MIN ? INT64_MIN : m_newestNs - kLongestCallNs;
    m_tables->folder.settleUntil(sinceNs, sinceNs < longAgoNs ? sinceNs : longAgoNs);
    m_tables->folder.flush();
    if (m_newestNs != INT64_MIN) m_tables->folder.noteEdge(m_newestNs + 1);
    const bool isFirst = m_newestNs == INT64_MIN;
    if (!m_files.rotate(isFirst ? INT64_MIN : m_newestNs + 1))
        m_target.countLoss(m_target.to, capture::LossKind::ioError, 1, isFirst ? 0 : m_newestNs);
    else if (!isFirst)
        writeOpenRanges();
    m_rotateAtNs = isFirst ? INT64_MAX : m_newestNs + m_ringNs;
}

/// For a reader that finds the ends of ranges in the file, and not their begins.
void LightRecorder::writeOpenRanges() noexcept {
    capture::OpenRangesRecord* const records = m_tables->openRanges;
    uint32_t count = 0;
    for (size_t place = 0; place < StepMarks::kThreads; ++place)
        if (m_tables->folder.marks().openRanges(place, records[count])) ++count;
    if (count == 0) return;
    capture::BlockInfo info;
    info.source = capture::Source::injector;
    info.recordCount = count;
    m_files.append(info, records, count * sizeof records[0]);
}

void LightRecorder::writeFold(void* self, const void* records, size_t bytes, uint32_t count, int64_t lastNs) noexcept {
    const Target& target = static_cast<LightRecorder*>(self)->m_target;
    target.write(target.to, capture::kNoThread, records, bytes, count, lastNs);
}

/// What lasts goes first: should the process die in between, the ring tells it again, which does no harm; the block in
/// the .detail file says how far the ring was read.
void LightRecorder::flush() noexcept {
    if (m_tables->lasting.used != 0)
        m_target.write(m_target.to, m_thread, m_tables->lasting.bytes, m_tables->lasting.used,
                       m_tables->lasting.records, m_tables->lasting.lastNs);
    m_tables->lasting.clear();
    if (m_tables->detail.used == 0) return;
    capture::BlockInfo info;
    info.threadIndex = m_thread;
    info.recordCount = m_tables->detail.records;
    info.highWaterNs = m_tables->detail.lastNs;
    info.ringEnd = m_ringEnd;
    if (!m_files.isOpen() ||
        m_files.append(info, m_tables->detail.bytes, m_tables->detail.used) != capture::AppendResult::ok)
        m_target.countLoss(m_target.to, capture::LossKind::ioError, m_tables->detail.records, m_tables->detail.lastNs);
    m_tables->detail.clear();
}

void LightRecorder::finish() noexcept {
    m_tables->folder.settleUntil(INT64_MAX, INT64_MAX);
    m_tables->folder.flush();
    m_files.close();
}

void LightRecorder::abandon() noexcept {
    if (m_ringNs == 0) return;
    m_ringNs = 0;
    m_tables->folder.clear();
    m_files.abandon();
    m_tables->lasting.clear();
    m_tables->detail.clear();
}

}  // namespace rankscope::injector
