// SPDX-License-Identifier: Apache-2.0
#include "collector/team/file_copies.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "collector/store/error.h"
#include "collector/store/folder_access.h"
#include "collector/team/long_lists.h"
#include "collector/team/packing.h"

namespace rankscope::team {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse(const fs::path& file, const char* call) {
    throw store::Error(file.string(), std::string("cannot be copied here: ") + call + ": " + std::strerror(errno),
                       "check the room on the disk, and your permissions");
}

}  // namespace

void sendFile(const std::function<void(std::string_view)>& send, const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::error_code error;
    const uint64_t bytes = fs::file_size(file, error);
    if (!in || error)
        throw store::Error(file.string(), "cannot be read", "check that it is there, and your permissions");
    send(Packer()(bytes).take());
    std::string part;
    for (uint64_t at = 0; at < bytes; at += part.size()) {
        part.resize(std::min<uint64_t>(kPartBytes, bytes - at));
        if (!in.read(part.data(), static_cast<std::streamsize>(part.size())))
            throw store::Error(file.string(), "cannot be read to its end", "somebody changes it, or the disk fails");
        send(part);
    }
}

void receiveFile(const std::function<std::string_view()>& receive, const std::string& sender, const fs::path& file) {
    const auto bytes = Unpacker(receive(), sender).get<uint64_t>();
    const fs::path beside = store::partFileOf(file);
    std::error_code ignored;
    fs::remove(beside, ignored);
    try {
        const int out = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                               store::fileModeIn(beside.parent_path()));
        if (out < 0) refuse(file, "open");
        const std::unique_ptr<const int, void (*)(const int*)> closed(&out,
                                                                      [](const int* opened) { ::close(*opened); });
        for (uint64_t at = 0; at < bytes;) {
            std::string_view part = receive();
            if (part.empty() || part.size() > bytes - at) refuseMessage(sender);
            at += part.size();
            while (!part.empty()) {
                const ssize_t wrote = ::write(out, part.data(), part.size());
                if (wrote < 0 && errno == EINTR) continue;
                if (wrote < 0) refuse(file, "write");
                part.remove_prefix(static_cast<size_t>(wrote));
            }
        }
        if (::fsync(out) != 0) refuse(file, "fsync");
        fs::rename(beside, file);
    } catch (const fs::filesystem_error& error) {
        fs::remove(beside, ignored);
        throw store::Error(file.string(), "rename: " + error.code().message(), "check that the folder may be written");
    } catch (...) {
        fs::remove(beside, ignored);
        throw;
    }
}

}  // namespace rankscope::team
