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

// What the folder of a file lets others do with it, of reading and writing.
mode_t openToOthers(const char* path) noexcept {
    char folder[4096];
    std::strcpy(folder, path);
    char* slash = std::strrchr(folder, '/');
    if (slash == nullptr) return 0;
    slash[1] = '\0';
    struct stat info {};
    if (syscall(SYS_newfstatat, AT_FDCWD, folder, &info, 0) != 0) return 0;
    // A folder that all may write into and nobody may clear (/tmp) gives nobody the right to write its files.
    return info.st_mode & ((info.st_mode & S_ISVTX) != 0 ? 0044 : 0066);
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

bool OwnFile::create(const char* path, Access access) noexcept {
    if (std::strlen(path) >= sizeof m_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    const mode_t mode = 0600 | openToOthers(path);
    const int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, access == Access::ours ? mode & 0444 : mode);
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
    const int fd = openAgain();
    if (fd < 0) return -1;
    if (!isOurs(fd)) {
        ::close(fd);
        return -1;
    }
    const int moved = moveUp(fd);  // the old number is the job's now
    if (!isOurs(moved)) {          // so was the one in between, already: what was moved is a file of the job
        if (moved != fd) ::close(moved);
        return -1;
    }
    m_fd = moved;
    return m_fd;
}

int OwnFile::openAgain() noexcept {
    constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const int fd = ::open(m_path, O_RDWR | kFlags);
    if (fd >= 0 || errno != EACCES) return fd;
    // One that nobody may write: for a moment we may.
    const int readable = ::open(m_path, O_RDONLY | kFlags);
    if (readable < 0) return -1;
    struct stat info {};
    const bool known = isOurs(readable) && syscall(SYS_fstat, readable, &info) == 0;
    int result = -1;
    if (known && ::fchmod(readable, info.st_mode | 0200) == 0) {
        result = ::open(m_path, O_RDWR | kFlags);
        ::fchmod(readable, info.st_mode);
    }
    ::close(readable);
    return result;
}

bool OwnFile::readSize(uint64_t& bytes) noexcept {
    struct stat info {};
    const int fd = descriptor();
    if (fd < 0 || syscall(SYS_fstat, fd, &info) != 0) return false;
    bytes = static_cast<uint64_t>(info.st_size);
    return true;
}

bool OwnFile::isNamed() const noexcept {
    struct stat info {};
    return syscall(SYS_newfstatat, AT_FDCWD, m_path, &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_dev == m_device &&
           info.st_ino == m_inode;
}

void OwnFile::close() noexcept {
    if (m_fd >= 0 && isOurs(m_fd)) ::close(m_fd);
    m_fd = -1;
}

void OwnFile::closeAndUnlink() noexcept {
    if (m_fd < 0) return;
    if (isNamed()) ::unlink(m_path);
    close();
}

}  // namespace rankscope::capture
