// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "injector/capture_format/records.h"

namespace rankscope::capture {

/// Follows a capture file while its process writes it, block by block, and touches nothing. What the process has not
/// written yet (its rings, of a fifth of a second) comes later. Not thread-safe.
class CaptureTail {
  public:
    using Take = std::function<void(const BlockHeader& block, const std::vector<uint8_t>& payload)>;

    explicit CaptureTail(std::string path) : m_path(std::move(path)) {}

    /// Nothing until it is written, or where it is no capture of this version.
    const std::optional<FileHeader>& header();
    /// Why header() had nothing, with file and offset; empty where it had.
    const std::string& complaint() const { return m_complaint; }

    /// Hands on the whole blocks that have come since, until `mostBytes` are read. A block that is being written waits
    /// for the next call; damaged ones are skipped. False where nothing came.
    bool poll(const Take& take, uint64_t mostBytes = UINT64_MAX);

    const std::string& path() const { return m_path; }
    /// Bytes of the file that were read.
    uint64_t offset() const { return m_offset; }

  private:
    std::string m_path;
    std::optional<FileHeader> m_header;
    std::string m_complaint;
    uint64_t m_offset = kFileHeaderBytes;
};

}  // namespace rankscope::capture
