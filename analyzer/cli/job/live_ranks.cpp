// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/live_ranks.h"

#include <algorithm>
#include <regex>
#include <string>

#include "analyzer/cli/job/process_start.h"

namespace rankscope::cli {

std::vector<pid_t> liveRanks(const std::filesystem::path& captureFolder) {
    static const std::regex kName(R"(.*\.([0-9]{1,9})\.([0-9]{1,19})(-[0-9]+)?\.ring)");
    std::vector<pid_t> live;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(captureFolder, ignored)) {
        const std::string name = entry.path().filename().string();
        std::smatch parts;
        if (!std::regex_match(name, parts, kName)) continue;
        const pid_t pid = std::stoi(parts[1]);
        const uint64_t start = processStart(pid);
        if (start != 0 && start == std::stoull(parts[2])) live.push_back(pid);
    }
    std::sort(live.begin(), live.end());
    live.erase(std::unique(live.begin(), live.end()), live.end());
    return live;
}

}  // namespace rankscope::cli
