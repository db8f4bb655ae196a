// SPDX-License-Identifier: Apache-2.0
// A file that goes from one process to another: first its length, then its bytes in parts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace rankscope::team {

/// Throws store::Error where it cannot be read.
void sendFile(const std::function<void(std::string_view)>& send, const std::filesystem::path& file);

/// Puts it in place in one rename when it is whole; until then an older one stays. Throws store::Error where it cannot
/// be written; `receive` gives the messages of `sender`, each until the next.
void receiveFile(const std::function<std::string_view()>& receive, const std::string& sender,
                 const std::filesystem::path& file);

}  // namespace rankscope::team
