// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/verbs/reference_framework.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "analyzer/cli/console/errors.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHowToInstall =
    "./bootstrap.sh frameworks installs them (about 5 GB), or name a Python environment in RANKSCOPE_FRAMEWORKS";
constexpr const char* kThisMachine = "127.0.0.1";

fs::path launcherIn(const InstallLayout& layout) {
    return layout.frameworks / "bin/torchrun";
}

// A script of the built-in jobs, unless it is a path that leads somewhere from here.
fs::path findScript(const InstallLayout& layout, const std::string& script) {
    std::error_code ignored;
    if (fs::is_regular_file(script, ignored)) return fs::absolute(script);
    const fs::path builtIn = layout.frameworkJobs.parent_path().parent_path() / script;
    if (fs::is_regular_file(builtIn, ignored)) return builtIn;
    throw VerbError(kExitInput, fmt::format("there is no script {}", script),
                    "a path, or one of the built-in jobs' such as pytorch/ddp_train.py");
}

// Looked for by its folder: importing it would take seconds.
bool hasModule(const fs::path& environment, const std::string& module) {
    std::string folder = module;
    std::ranges::replace(folder, '.', '/');
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(environment / "lib", ignored))
        for (const std::string& place : {folder, folder + ".py"})
            if (fs::exists(entry.path() / "site-packages" / place, ignored)) return true;
    return false;
}

// Several launchers of one job meet at a port that they must be told.
int freePort() {
    const int probe = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool bound = bind(probe, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    close(probe);
    checked(bound ? 0 : -1, "bind", kThisMachine);
    return ntohs(address.sin_port);
}

Environment environmentOf(const InstallLayout& layout, const ReferenceScript& script, const JobSettings& settings) {
    Environment environment = prepareEnvironment(layout, settings);
    // As in a shell in which the environment was activated.
    setVariable(environment, "VIRTUAL_ENV", layout.frameworks.string());
    setVariable(environment, "PATH", (layout.frameworks / "bin").string() + ":" + getVariable(environment, "PATH"));
    // What torchrun would set, and say so.
    setVariable(environment, "OMP_NUM_THREADS", "1");
    for (const auto& [name, value] : script.environment)
        // What a user sets wins, so that a recommendation can be tried.
        if (getVariable(environment, name).empty()) setVariable(environment, name, value);
    return environment;
}

}  // namespace

void requireFrameworks(const InstallLayout& layout) {
    std::error_code ignored;
    if (!fs::exists(launcherIn(layout), ignored))
        throw VerbError(kExitInput,
                        fmt::format("the frameworks are not installed: there is no {}", launcherIn(layout).string()),
                        kHowToInstall);
}

std::vector<ProcessToStart> launchersOf(const InstallLayout& layout, const ReferenceScenario& scenario,
                                        const JobSettings& settings) {
    requireFrameworks(layout);
    const ReferenceScript& script = scenario.script.value();
    for (const std::string& module : script.modules)
        if (!hasModule(layout.frameworks, module))
            throw VerbError(kExitInput, fmt::format("{} has no module {}", layout.frameworks.string(), module),
                            kHowToInstall);

    const Environment environment = environmentOf(layout, script, settings);
    std::vector<std::string> command = {launcherIn(layout).string(),
                                        fmt::format("--nproc-per-node={}", scenario.ranksPerNode)};
    if (scenario.nodes == 1) command.emplace_back("--standalone");
    const int port = scenario.nodes == 1 ? 0 : freePort();
    std::vector<ProcessToStart> launchers;
    for (int node = 0; node < scenario.nodes; ++node) {
        ProcessToStart launcher{command, environment};
        if (scenario.nodes > 1) {
            for (const std::string& word :
                 {fmt::format("--nnodes={}", scenario.nodes), fmt::format("--node-rank={}", node),
                  fmt::format("--master-addr={}", kThisMachine), fmt::format("--master-port={}", port)})
                launcher.command.push_back(word);
            setVariable(launcher.environment, "RANKSCOPE_HOST", fmt::format("node{}", node));
        }
        launcher.command.push_back(findScript(layout, script.script).string());
        launcher.command.insert(launcher.command.end(), script.arguments.begin(), script.arguments.end());
        launchers.push_back(std::move(launcher));
    }
    return launchers;
}

}  // namespace rankscope::cli
