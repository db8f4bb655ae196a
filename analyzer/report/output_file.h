// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace rankscope::analyzer {

/// A file written beside its place and renamed by commit(), so that a reader never sees half of it; without commit() nothing is left. What
/// is no regular file (a device, a pipe) is written to as it is: a rename would put a file in its place. A link keeps pointing to what it
/// points to. Throws std::filesystem::filesystem_error with the name given and the reason.
class OutputFile {
  public:
    explicit OutputFile(const std::filesystem::path& name);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    std::ostream& stream() { return m_stream; }
    void commit();

  private:
    std::filesystem::path m_name;    // as the user gave it
    std::filesystem::path m_file;    // what it means
    std::filesystem::path m_beside;  // the same as m_file: written in place
    std::ofstream m_stream;
    bool m_isOpen = true;
};

/// All of a file at once.
void writeOutputFile(const std::string& text, const std::filesystem::path& name);

}  // namespace rankscope::analyzer
