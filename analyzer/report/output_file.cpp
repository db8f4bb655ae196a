// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/output_file.h"

#include <cerrno>
#include <system_error>

namespace fs = std::filesystem;

namespace rankscope::analyzer {
namespace {

[[noreturn]] void fail(const fs::path& name, int code) {
    throw fs::filesystem_error("cannot write", name, std::error_code(code == 0 ? EIO : code, std::generic_category()));
}

constexpr int kMostLinks = 40;  // as Linux follows

// What the last of the links points to, even where it does not exist yet.
fs::path meant(fs::path file) {
    std::error_code error;
    for (int i = 0; i < kMostLinks && fs::is_symlink(file, error); ++i) {
        const fs::path target = fs::read_symlink(file, error);
        if (error) return file;
        file = file.parent_path() / target;
    }
    return file;
}

fs::path writtenFirst(const fs::path& file) {
    std::error_code error;
    const bool inPlace = fs::exists(file, error) && !fs::is_regular_file(file, error);
    return inPlace ? file : fs::path(file.string() + ".new");
}

}  // namespace

OutputFile::OutputFile(const fs::path& name) : m_name(name), m_file(meant(name)), m_beside(writtenFirst(m_file)) {
    errno = 0;
    m_stream.open(m_beside, std::ios::binary);
    if (!m_stream) fail(m_name, errno);
}

OutputFile::~OutputFile() {
    if (!m_isOpen || m_beside == m_file) return;
    m_stream.close();
    std::error_code ignored;
    fs::remove(m_beside, ignored);
}

void OutputFile::commit() {
    errno = 0;
    m_stream.close();
    if (!m_stream) fail(m_name, errno);
    if (m_beside != m_file) {
        std::error_code error;
        fs::rename(m_beside, m_file, error);
        if (error) fail(m_name, error.value());
    }
    m_isOpen = false;
}

void writeOutputFile(const std::string& text, const fs::path& name) {
    OutputFile file(name);
    file.stream() << text;
    file.commit();
}

}  // namespace rankscope::analyzer
