// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/streamed_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "analyzer/cli/errors.h"

namespace rankscope::cli {

StreamedFile::StreamedFile(const std::string& name) : m_name(name), m_file(name) {
    std::error_code error;
    if (std::filesystem::is_symlink(name, error)) {
        const auto target = std::filesystem::weakly_canonical(name, error);
        if (!error) m_file = target.string();
    }
    const bool inPlace = std::filesystem::exists(m_file, error) && !std::filesystem::is_regular_file(m_file, error);
    m_beside = inPlace ? m_file : m_file + ".new";
    m_stream.open(m_beside, std::ios::binary);
    if (!m_stream) fail();
}

StreamedFile::~StreamedFile() {
    if (!m_isOpen || m_beside == m_file) return;
    m_stream.close();
    std::error_code ignored;
    std::filesystem::remove(m_beside, ignored);
}

void StreamedFile::fail() {
    const int code = errno;
    throw VerbError(kExitInput, fmt::format("cannot write {}{}", m_name, code == 0 ? "" : fmt::format(": {}", std::strerror(code))), "choose another place with -o");
}

void StreamedFile::commit() {
    errno = 0;
    m_stream.close();
    if (!m_stream) fail();
    if (m_beside != m_file) {
        std::error_code error;
        std::filesystem::rename(m_beside, m_file, error);
        if (error) {
            errno = error.value();
            fail();
        }
    }
    m_isOpen = false;
}

}  // namespace rankscope::cli
