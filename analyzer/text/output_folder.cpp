// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/output_folder.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace fs = std::filesystem;

namespace rankscope::text {
namespace {

[[noreturn]] void fail(const fs::path& name) {
    throw fs::filesystem_error("cannot write", name, std::error_code(errno, std::generic_category()));
}

// As mkdir makes them, not as mkdtemp does.
void openAsUsual(const fs::path& folder) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::chmod(folder.c_str(), 0777 & ~mask);
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& name) : m_name(name.has_filename() ? name : name.parent_path()) {
    if (fs::exists(m_name)) {
        m_place = m_name;
        return;
    }
    if (m_name.has_parent_path()) fs::create_directories(m_name.parent_path());
    std::string beside = m_name.string() + ".XXXXXX";
    if (::mkdtemp(beside.data()) == nullptr) fail(name);
    m_place = beside;
    openAsUsual(m_place);
}

OutputFolder::~OutputFolder() {
    if (!m_isOpen) return;
    std::error_code ignored;
    if (m_place != m_name) {
        fs::remove_all(m_place, ignored);
        return;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(m_place, ignored))
        fs::remove_all(entry.path(), ignored);
}

void OutputFolder::commit() {
    if (m_place != m_name && ::rename(m_place.c_str(), m_name.c_str()) != 0) fail(m_name);
    m_isOpen = false;
}

}  // namespace rankscope::text
