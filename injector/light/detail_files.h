// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "injector/capture_format/block_writer.h"
#include "injector/text.h"

namespace rankscope::injector {

/// The ring of light mode on disk: NAME.<k>.detail beside NAME.cap, each with the records of about one period at full
/// detail. Two of them exist: when a third begins, the oldest is deleted. Not thread-safe.
class DetailFiles {
  public:
    constexpr DetailFiles() = default;
    DetailFiles(const DetailFiles&) = delete;
    DetailFiles& operator=(const DetailFiles&) = delete;

    /// `base`: path of the capture file without its ending; `header`: as the capture file's.
    void begin(const char* base, const capture::FileHeader& header) noexcept;

    /// The next file, for what begins at `sinceNs` or later. False: it cannot be made, and no file is left.
    bool rotate(int64_t sinceNs) noexcept;
    /// From when on everything is in the files that exist; INT64_MAX: there is none.
    int64_t oldestSinceNs() const noexcept;
    int64_t newestSinceNs() const noexcept { return m_sinceNs[m_index % kFiles]; }
    bool isOpen() const noexcept { return current().isOpen(); }
    uint64_t bytesInNewest() const noexcept { return current().bytesWritten(); }

    /// All of one thread.
    capture::AppendResult append(const capture::BlockInfo& info, const void* records, size_t bytes) noexcept;

    /// The files stay.
    void close() noexcept;
    /// In a forked child: the files are the parent's.
    void abandon() noexcept;

  private:
    static constexpr uint32_t kFiles = 2;

    capture::BlockWriter& current() noexcept { return m_files[m_index % kFiles]; }
    const capture::BlockWriter& current() const noexcept { return m_files[m_index % kFiles]; }

    FixedText<4096> m_base;
    capture::FileHeader m_header{};
    uint32_t m_index = kFiles - 1;  // of the newest; the first is 0 after it wrapped once
    uint32_t m_number = 0;          // that the next file is called by
    int64_t m_sinceNs[kFiles] = {INT64_MAX, INT64_MAX};
    capture::BlockWriter m_files[kFiles];
};

}  // namespace rankscope::injector
