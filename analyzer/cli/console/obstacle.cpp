// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/obstacle.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace rankscope::cli {

namespace fs = std::filesystem;

std::string obstacleAt(const fs::path& place) {
    std::error_code error;
    const fs::file_type type = fs::status(place, error).type();
    const auto unreadable = [](int code) {
        return fmt::format("cannot be read: {}", std::generic_category().message(code));
    };
    switch (type) {
        case fs::file_type::not_found:
            if (error == std::errc::not_a_directory) return unreadable(ENOTDIR);
            return fs::is_symlink(fs::symlink_status(place, error)) ? "is a link to nothing" : "";
        case fs::file_type::none:
            return unreadable(error.value());  // a loop of links, a folder above it that is closed
        case fs::file_type::regular:
            return access(place.c_str(), R_OK) == 0 ? "" : unreadable(errno);
        case fs::file_type::directory:
            return access(place.c_str(), X_OK) == 0 ? "" : unreadable(errno);
        case fs::file_type::fifo:
            return "is a pipe";
        case fs::file_type::socket:
            return "is a socket";
        default:
            return "is a device";
    }
}

}  // namespace rankscope::cli
