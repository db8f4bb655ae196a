// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace rankscope::collector {

/// A file read front to back as text; gzip is recognised by its first bytes and inflated on the way. Throws ImportError
/// when it cannot be opened. Damage behind the first byte never throws: what could be read before it is handed out,
/// then the file ends and damage() tells why.
class InputFile {
  public:
    explicit InputFile(std::filesystem::path path);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    /// Reads up to `bytes` bytes; fewer only at the end, 0 when nothing is left.
    size_t read(char* to, size_t bytes);

    const std::filesystem::path& path() const { return m_path; }
    /// Empty, or why the file ended before its end (cut or damaged gzip stream, read error).
    const std::string& damage() const { return m_damage; }

  private:
    struct Inflater;
    size_t readDisk(char* to, size_t bytes);
    size_t readInflated(char* to, size_t bytes);

    std::filesystem::path m_path;
    int m_fd = -1;
    std::string m_damage;
    std::unique_ptr<Inflater> m_inflater;  // null: plain text
};

/// Everything of a file that is read as a whole. Throws ImportError where that is more than `most` bytes, which `what`
/// ("a dump of a flight recorder") never has; input.damage() tells why it may be cut off.
std::string wholeText(InputFile& input, size_t most, const char* what);

}  // namespace rankscope::collector
