// SPDX-License-Identifier: Apache-2.0
#include "injector/light/detail_files.h"

#include "injector/capture_format/records.h"

namespace rankscope::injector {

void DetailFiles::begin(const char* base, const capture::FileHeader& header) noexcept {
    m_base.clear();
    m_base.append(base);
    m_header = header;
    m_number = 0;
}

bool DetailFiles::rotate(int64_t sinceNs) noexcept {
    ++m_index;
    // The one that is two periods old: nobody needs it, and its space may be what the next one lacks.
    current().remove();
    FixedText<4096> path = m_base;
    path.append(".").append(int64_t{m_number}).append(".detail");
    const bool made = !path.wasCut() && current().open(path.c_str(), m_header, 0);
    if (!made) {
        // What comes now is in no file, so that the older one says no longer that everything since is told.
        for (capture::BlockWriter& file : m_files) file.remove();
        for (int64_t& since : m_sinceNs) since = INT64_MAX;
        return false;
    }
    m_sinceNs[m_index % kFiles] = sinceNs;
    capture::DetailSinceRecord record{};
    record.head = {capture::RecordType::detailSince, 1, 0};
    record.index = m_number++;
    record.sinceNs = sinceNs;
    capture::BlockInfo info;
    info.source = capture::Source::injector;
    info.recordCount = 1;
    current().append(info, &record, sizeof record);
    return true;
}

int64_t DetailFiles::oldestSinceNs() const noexcept {
    return m_sinceNs[0] < m_sinceNs[1] ? m_sinceNs[0] : m_sinceNs[1];
}

capture::AppendResult DetailFiles::append(const capture::BlockInfo& info, const void* records, size_t bytes) noexcept {
    return current().append(info, records, bytes);
}

void DetailFiles::close() noexcept {
    for (capture::BlockWriter& file : m_files) file.close();
}

void DetailFiles::abandon() noexcept {
    for (capture::BlockWriter& file : m_files) file.abandon();
    for (int64_t& since : m_sinceNs) since = INT64_MAX;
    m_index = kFiles - 1;
}

}  // namespace rankscope::injector
