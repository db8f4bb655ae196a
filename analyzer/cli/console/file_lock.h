// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace rankscope::cli {

// A small file, created when missing and held under an exclusive flock as long as this object lives: how the wrappers
// of one job agree.
class LockedFile {
  public:
    explicit LockedFile(const std::filesystem::path& path);
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
