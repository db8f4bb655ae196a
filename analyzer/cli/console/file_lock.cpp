// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/cli/console/errors.h"

namespace rankscope::cli {

LockedFile::LockedFile(const std::filesystem::path& path) : m_path(path) {
    for (;;) {
        // Not through a link, which a prepared folder may hold: what it names would be overwritten.
        m_descriptor =
            checked(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644), "open", path.string());
        while (flock(m_descriptor, LOCK_EX) != 0) {
            if (errno == EINTR) continue;
            const int cause = errno;
            close(m_descriptor);
            throw std::system_error(cause, std::generic_category(), "flock " + path.string());
        }
        // Its former holder may have removed the file while we waited: then we hold a file that nobody else can find.
        struct stat held {
        }, named{};
        if (fstat(m_descriptor, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
            held.st_dev == named.st_dev)
            return;
        close(m_descriptor);
    }
}

LockedFile::~LockedFile() {
    close(m_descriptor);
}

std::string LockedFile::read() const {
    std::string text;
    char block[4096];
    for (;;) {
        const ssize_t got =
            checked(pread(m_descriptor, block, sizeof block, static_cast<off_t>(text.size())), "read", m_path.string());
        if (got == 0) return text;
        text.append(block, static_cast<size_t>(got));
    }
}

void LockedFile::write(const std::string& text) {
    checked(ftruncate(m_descriptor, 0), "truncate", m_path.string());
    append(text);
}

void LockedFile::append(const std::string& text) {
    const off_t end = checked(lseek(m_descriptor, 0, SEEK_END), "seek", m_path.string());
    checked(pwrite(m_descriptor, text.data(), text.size(), end), "write", m_path.string());
}

}  // namespace rankscope::cli
