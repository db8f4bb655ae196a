// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <system_error>

namespace fs = std::filesystem;

namespace rankscope::text {
namespace {

constexpr int kMostLinks = 40;  // as Linux follows

// Follows links to what the last of them points to, even where that does not exist yet.
fs::path meant(fs::path file) {
    std::error_code error;
    for (int i = 0; i < kMostLinks && fs::is_symlink(file, error); ++i) {
        const fs::path target = fs::read_symlink(file, error);
        if (error) return file;
        file = file.parent_path() / target;
    }
    return file;
}

// Names a file of this process alone: two that write the same file do not disturb each other, and no file of the user's
// is in the way.
fs::path writtenFirst(const fs::path& file) {
    std::error_code error;
    const bool inPlace = file == "/dev/stdout" || (fs::exists(file, error) && !fs::is_regular_file(file, error));
    if (inPlace) return file;
    const std::string end = "." + std::to_string(getpid()) + ".new", name = file.filename().string();
    const bool fits = name.size() + end.size() <= NAME_MAX;
    return file.parent_path() / ((fits || name.size() > NAME_MAX ? name : name.substr(0, NAME_MAX - end.size())) + end);
}

}  // namespace

OutputFile::Buffer::int_type OutputFile::Buffer::overflow(int_type c) {
    const int_type done = std::filebuf::overflow(c);
    if (traits_type::eq_int_type(done, traits_type::eof()) && m_failure == 0) m_failure = errno;
    return done;
}

std::streamsize OutputFile::Buffer::xsputn(const char* text, std::streamsize size) {
    const std::streamsize done = std::filebuf::xsputn(text, size);
    if (done != size && m_failure == 0) m_failure = errno;
    return done;
}

int OutputFile::Buffer::sync() {
    const int done = std::filebuf::sync();
    if (done != 0 && m_failure == 0) m_failure = errno;
    return done;
}

OutputFile::OutputFile(const fs::path& name)
    : m_name(name == "-" ? "stdout" : name),
      m_file(name == "-" ? "/dev/stdout" : meant(name)),
      m_beside(writtenFirst(m_file)) {
    // What is in the way under that name was left by a process that is gone, or put there by somebody for us to follow.
    if (m_beside != m_file) {
        ::unlink(m_beside.c_str());
        const int made = ::open(m_beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (made < 0) fail();
        ::close(made);
    }
    errno = 0;
    // A stdout that is a file is appended to, not begun anew: >> and what others wrote there stay.
    const std::ios::openmode mode =
        std::ios::out | std::ios::binary | (m_file == "/dev/stdout" ? std::ios::app : std::ios::openmode{});
    bool isOpen = false;
    try {
        isOpen = m_buffer.open(m_beside, mode) != nullptr;
    } catch (...) {  // no memory for its buffer
        if (m_beside != m_file) ::unlink(m_beside.c_str());
        throw;
    }
    if (isOpen) return;
    const int cause = errno;
    if (m_beside != m_file) ::unlink(m_beside.c_str());
    errno = cause;
    fail();
}

OutputFile::~OutputFile() {
    if (!m_isOpen || m_beside == m_file) return;
    m_buffer.close();
    std::error_code ignored;
    fs::remove(m_beside, ignored);
}

void OutputFile::fail() {
    const int code = m_buffer.failure() != 0 ? m_buffer.failure() : errno != 0 ? errno : EIO;
    throw fs::filesystem_error("cannot write", m_name, std::error_code(code, std::generic_category()));
}

void OutputFile::commit() {
    errno = 0;
    const bool closed = m_buffer.close() != nullptr;
    if (!m_stream || !closed) fail();
    if (m_file == "/dev/stdout") ::lseek(STDOUT_FILENO, 0, SEEK_END);  // who shares that file goes on behind
    if (m_beside != m_file) {
        std::error_code error;
        const fs::file_status present = fs::status(m_file, error);
        if (fs::exists(present)) fs::permissions(m_beside, present.permissions(), error);
        fs::rename(m_beside, m_file, error);
        if (error) {
            errno = error.value();
            fail();
        }
    }
    m_isOpen = false;
}

void writeOutputFile(const std::string& text, const fs::path& name) {
    OutputFile file(name);
    file.stream() << text;
    file.commit();
}

void removeOutputFile(const fs::path& name) {
    std::error_code ignored;
    const fs::path file = meant(name);
    if (name != "-" && file != "/dev/stdout" && fs::is_regular_file(file, ignored)) fs::remove(file, ignored);
}

}  // namespace rankscope::text
