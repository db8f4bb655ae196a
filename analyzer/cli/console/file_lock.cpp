// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "analyzer/cli/console/errors.h"

namespace rankscope::cli {

namespace {

using Clock = std::chrono::steady_clock;

/// "pid 12 (rankscope)" of this machine's, by /proc/locks: `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE START END`.
std::string holderOf(int descriptor) {
    struct stat info {};
    if (fstat(descriptor, &info) != 0) return {};
    const std::string place = fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev), info.st_ino);
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);) {
        std::istringstream words(line);
        std::string number, kind, mode, access, pid, file;
        words >> number >> kind >> mode >> access >> pid >> file;
        if (kind != "FLOCK" || file != place) continue;
        std::string name;
        std::getline(std::ifstream("/proc/" + pid + "/comm") >> std::ws, name);
        return fmt::format("pid {} ({})", pid, name.empty() ? "?" : name);
    }
    return {};
}

[[noreturn]] void failWith(int descriptor, int cause, const std::string& what) {
    close(descriptor);
    throw std::system_error(cause, std::generic_category(), what);
}

void requireOwn(int descriptor, const std::filesystem::path& path) {
    struct stat file {
    }, folder{};
    checked(fstat(descriptor, &file), "stat", path.string());
    const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    const bool isOurs =
        file.st_uid == geteuid() || (stat(parent.c_str(), &folder) == 0 && file.st_uid == folder.st_uid);
    if (!S_ISREG(file.st_mode) || !isOurs)
        failWith(descriptor, EPERM, fmt::format("{} is not a file of this run's owner", path.string()));
}

void lock(int descriptor, const std::filesystem::path& path, Clock::time_point until) {
    constexpr std::chrono::milliseconds kShortest{1}, kLongest{50};
    auto pause = kShortest;
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EINTR && errno != EWOULDBLOCK) failWith(descriptor, errno, "flock " + path.string());
        if (Clock::now() >= until) {
            const std::string holder = holderOf(descriptor);
            failWith(descriptor, ETIMEDOUT,
                     fmt::format("{} is held by {}", path.string(),
                                 holder.empty() ? "a process that this machine does not know, perhaps on another host"
                                                : holder));
        }
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, kLongest);
    }
}

}  // namespace

LockedFile::LockedFile(const std::filesystem::path& path, std::chrono::milliseconds patience) : m_path(path) {
    const Clock::time_point until = Clock::now() + patience;
    for (;;) {
        m_descriptor = checked(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600), "open",
                               path.string());
        requireOwn(m_descriptor, path);
        lock(m_descriptor, path, until);
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
