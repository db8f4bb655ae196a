// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rankscope::capture {

/// A file of ours in a process that is not ours: the job may close every descriptor or put a file of its own in our
/// descriptor's place. So each use first makes sure that the number still means our file, and opens it again by name
/// when it does not. Not thread-safe.
class OwnFile {
  public:
    constexpr OwnFile() = default;
    OwnFile(const OwnFile&) = delete;
    OwnFile& operator=(const OwnFile&) = delete;

    /// Whether its owner may open it for writing, too. Where nobody may, none but us can cut it off.
    enum class Access : uint8_t { owner, ours };

    /// Creates it (O_EXCL), for its owner and for whom its folder lets others read. False with errno set.
    bool create(const char* path, Access access = Access::owner) noexcept;
    /// Bytes that are in it now; false: not to be known.
    bool readSize(uint64_t& bytes) noexcept;
    /// A descriptor that means our file at this moment, or -1: it is gone.
    int descriptor() noexcept;
    /// The same, but it is not opened again when the job has taken it.
    int heldDescriptor() const noexcept { return m_fd >= 0 && isOurs(m_fd) ? m_fd : -1; }
    void close() noexcept;
    void closeAndUnlink() noexcept;
    bool isOpen() const noexcept { return m_fd >= 0; }

  private:
    bool isOurs(int fd) const noexcept;
    bool isNamed() const noexcept;
    int openAgain() noexcept;

    int m_fd = -1;
    uint64_t m_device = 0;
    uint64_t m_inode = 0;
    char m_path[4096] = {};
};

}  // namespace rankscope::capture
