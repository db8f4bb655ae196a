// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

/// A folder of its own for a test, gone afterwards.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        char pattern[] = "/tmp/rankscope-test-XXXXXX";
        m_path = mkdtemp(pattern);
    }
    ~TemporaryFolder() { std::filesystem::remove_all(m_path); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::string& path() const { return m_path; }

  private:
    std::string m_path;
};
