// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace rankscope::cli {

// For files that are held for milliseconds: what ten thousand wrappers on a slow disk need one after the other.
inline constexpr std::chrono::seconds kLockPatience{60};

// A small file, created when missing and held under an exclusive flock as long as this object lives: how the wrappers
// of one job agree. Nobody but its owner may open it, so that nobody else can hold it, and it is not followed through a
// link, which a prepared folder may hold.
class LockedFile {
  public:
    // Waits for whoever holds it, at most so long. Throws std::system_error: errc::timed_out names the holder,
    // errc::operation_not_permitted is for a file that is neither ours nor of the owner of its folder, or no file.
    LockedFile(const std::filesystem::path& path, std::chrono::milliseconds patience);
    ~LockedFile();
    LockedFile(const LockedFile&) = delete;
    LockedFile& operator=(const LockedFile&) = delete;

    std::string read() const;
    void write(const std::string& text);
    void append(const std::string& text);

  private:
    std::filesystem::path m_path;
    int m_descriptor = -1;
};

}  // namespace rankscope::cli
