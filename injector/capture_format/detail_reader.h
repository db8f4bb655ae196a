// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "injector/capture_format/block_scanner.h"
#include "injector/capture_format/reader_loss.h"

namespace rankscope::capture {

/// Steps over the blocks of the .detail files beside a capture file, from the oldest to the newest. They are opened at
/// once: a process that lives may delete them meanwhile.
class DetailReader {
  public:
    /// `base`: path of the capture file without its ending; `processStartNs`: as the capture file says.
    DetailReader(const std::string& base, int64_t processStartNs, LossList& losses);

    /// From when on everything is told by these files; INT64_MAX: there is none.
    int64_t sinceNs() const { return m_sinceNs; }

    /// False at the end.
    bool next();
    const BlockScanner& block() const { return *m_files[m_index]; }
    /// How far each thread's ring was read, as the blocks so far say.
    const std::map<uint32_t, uint64_t>& ringEnds() const { return m_ringEnds; }

  private:
    int64_t m_sinceNs = INT64_MAX;
    size_t m_index = 0;
    std::vector<std::unique_ptr<BlockScanner>> m_files;
    std::map<uint32_t, uint64_t> m_ringEnds;
};

}  // namespace rankscope::capture
