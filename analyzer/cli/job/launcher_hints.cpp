// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/launcher_hints.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace rankscope::cli {

std::string missingForwardOptions(const std::vector<std::string>& command, const std::vector<std::string>& variables) {
    static const std::set<std::string> kOpenMpiLaunchers = {"mpirun", "mpiexec", "orterun", "oshrun", "prterun"};
    static const std::set<std::string> kHostOptions = {
        "-H", "-host", "--host", "-hostfile", "--hostfile", "-machinefile", "--machinefile", "--default-hostfile"};
    if (command.empty() || !kOpenMpiLaunchers.count(std::filesystem::path(command.front()).filename().string()))
        return {};
    if (std::none_of(command.begin(), command.end(),
                     [](const std::string& word) { return kHostOptions.count(word) > 0; }))
        return {};
    std::string options;
    for (const auto& name : variables) {
        bool forwarded = false;
        for (size_t i = 0; i + 1 < command.size(); ++i)
            forwarded = forwarded || (command[i] == "-x" && command[i + 1].substr(0, command[i + 1].find('=')) == name);
        if (!forwarded) options += (options.empty() ? "-x " : " -x ") + name;
    }
    return options;
}

}  // namespace rankscope::cli
