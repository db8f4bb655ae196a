// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rankscope::capture {
namespace {

// The call itself: glibc moved the symbol fstat in 2.33, and we must load with 2.28.
bool identify(int fd, uint64_t& device, uint64_t& inode) noexcept {
    struct stat info {};
    if (syscall(SYS_fstat, fd, &info) != 0) return false;
    device = info.st_dev;
    inode = info.st_ino;
    return true;
}

// High numbers keep out of the way of programs that count on the low ones.
int moveUp(int fd) noexcept {
    constexpr int kLowest = 200;
    const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, kLowest);
    if (moved < 0) return fd;
    ::close(fd);
    return moved;
}

}  // namespace

bool OwnFile::create(const char* path) noexcept {
    if (std::strlen(path) >= sizeof m_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    const int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return false;
    std::strcpy(m_path, path);
    m_fd = moveUp(fd);
    identify(m_fd, m_device, m_inode);
    return true;
}

bool OwnFile::isOurs(int fd) const noexcept {
    uint64_t device = 0;
    uint64_t inode = 0;
    return identify(fd, device, inode) && device == m_device && inode == m_inode;
}

int OwnFile::descriptor() noexcept {
    if (m_fd < 0) return -1;
    if (isOurs(m_fd)) return m_fd;
    const int fd = ::open(m_path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return -1;
    if (!isOurs(fd)) {
        ::close(fd);
        return -1;
    }
    m_fd = moveUp(fd);  // the old number is the job's now
    return m_fd;
}

void OwnFile::close() noexcept {
    if (m_fd >= 0 && isOurs(m_fd)) ::close(m_fd);
    m_fd = -1;
}

void OwnFile::closeAndUnlink() noexcept {
    if (m_fd < 0) return;
    if (descriptor() >= 0) ::unlink(m_path);
    close();
}

}  // namespace rankscope::capture
