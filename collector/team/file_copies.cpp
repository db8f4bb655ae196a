// SPDX-License-Identifier: Apache-2.0
#include "collector/team/file_copies.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "collector/store/error.h"
#include "collector/store/folder_access.h"
#include "collector/team/long_lists.h"
#include "collector/team/packing.h"

namespace rankscope::team {

namespace fs = std::filesystem;

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
    const fs::path beside =
        file.parent_path() / ("." + file.filename().string() + "." + std::to_string(getpid()) + ".part");
    try {
        std::ofstream out(beside, std::ios::binary | std::ios::trunc);
        for (uint64_t at = 0; at < bytes;) {
            const std::string_view part = receive();
            if (part.empty() || part.size() > bytes - at) refuseMessage(sender);
            out.write(part.data(), static_cast<std::streamsize>(part.size()));
            at += part.size();
        }
        out.close();
        if (!out)
            throw store::Error(file.string(), std::string("cannot be written: ") + std::strerror(errno),
                               "check the room on the disk, and your permissions");
        store::setFileMode(beside);
        fs::rename(beside, file);
    } catch (const fs::filesystem_error& error) {
        std::error_code ignored;
        fs::remove(beside, ignored);
        throw store::Error(file.string(), "rename: " + error.code().message(), "check that the folder may be written");
    } catch (...) {
        std::error_code ignored;
        fs::remove(beside, ignored);
        throw;
    }
}

}  // namespace rankscope::team
