// SPDX-License-Identifier: Apache-2.0
#include "collector/store/folder_access.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace rankscope::store {

namespace fs = std::filesystem;

namespace {

constexpr mode_t kOwnFolder = 0700, kAnyFolder = 0777, kOwnFile = 0600, kOthers = 0066;

void make(const fs::path& folder, mode_t mode) {
    if (::mkdir(folder.c_str(), mode) == 0 || (errno == EEXIST && fs::is_directory(folder))) return;
    throw fs::filesystem_error("cannot make the folder", folder, std::error_code(errno, std::generic_category()));
}

fs::path folderOf(const fs::path& file) {
    return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

mode_t modeOf(const fs::path& folder) {
    struct stat info {};
    return ::stat(folder.c_str(), &info) == 0 ? info.st_mode : kOwnFolder;
}

}  // namespace

void makeRunFolder(const fs::path& folder, bool shared) {
    const fs::path plain = folder.has_filename() ? folder : folder.parent_path();  // "run/" names the same as "run"
    if (plain.has_parent_path()) fs::create_directories(plain.parent_path());
    make(plain, shared ? kAnyFolder : kOwnFolder);
}

void makeFolderInside(const fs::path& folder) {
    make(folder, modeOf(folderOf(folder)) & kAnyFolder);
}

mode_t fileModeIn(const fs::path& folder) {
    constexpr mode_t kReadOnly = 0044;  // of /tmp, which all may write into and nobody may clear
    const mode_t mode = modeOf(folder);
    return kOwnFile | (mode & ((mode & S_ISVTX) != 0 ? kReadOnly : kOthers));
}

fs::path partFileOf(const fs::path& target) {
    return target.parent_path() / ("." + target.filename().string() + "." + std::to_string(getpid()) + ".part");
}

void setFileMode(const fs::path& file) {
    ::chmod(file.c_str(), fileModeIn(folderOf(file)));
}

}  // namespace rankscope::store
