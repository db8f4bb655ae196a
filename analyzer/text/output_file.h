// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace rankscope::text {

/// Writes a file beside its place and renames it in commit(), so that a reader never sees half of it; without commit()
/// nothing is left. What is no regular file (a device, a pipe) is written in place: a rename would put a file there. A
/// link keeps pointing to its target. "-" is stdout. Throws std::filesystem::filesystem_error with the name given and
/// the reason.
class OutputFile {
  public:
    explicit OutputFile(const std::filesystem::path& name);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    std::ostream& stream() { return m_stream; }
    void commit();

  private:
    // Remembers why the first write failed: a stream alone does not.
    class Buffer : public std::filebuf {
      public:
        int failure() const { return m_failure; }

      protected:
        int_type overflow(int_type c) override;
        std::streamsize xsputn(const char* text, std::streamsize size) override;
        int sync() override;

      private:
        int m_failure = 0;
    };

    [[noreturn]] void fail();

    std::filesystem::path m_name;    // as the user gave it
    std::filesystem::path m_file;    // what it means
    std::filesystem::path m_beside;  // the same as m_file: written in place
    Buffer m_buffer;
    std::ostream m_stream{&m_buffer};
    bool m_isOpen = true;
};

/// Writes all of a file at once.
void writeOutputFile(const std::string& text, const std::filesystem::path& name);

/// Removes a file that was written so. What was written in place (a device, a pipe, stdout) and links to a file stay.
void removeOutputFile(const std::filesystem::path& name);

}  // namespace rankscope::text
