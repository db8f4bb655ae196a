// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>

namespace rankscope::cli {

// A file too large for memory, written beside its place and renamed by commit(); without commit() nothing is left. What is no regular file (a device, a pipe) is written to as
// it is. Throws VerbError (exit code 3).
class StreamedFile {
  public:
    explicit StreamedFile(const std::string& name);
    ~StreamedFile();
    StreamedFile(const StreamedFile&) = delete;
    StreamedFile& operator=(const StreamedFile&) = delete;

    std::ostream& stream() { return m_stream; }
    void commit();

  private:
    [[noreturn]] void fail();

    std::string m_name;    // as the user gave it
    std::string m_file;    // what it means
    std::string m_beside;  // the same as m_file: written in place
    std::ofstream m_stream;
    bool m_isOpen = true;
};

}  // namespace rankscope::cli
