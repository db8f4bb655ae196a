// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/framework_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "reference/vgpu/device/operator_hooks.h"

namespace rankscope::vgpu {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> g_look{true};
std::atomic<const std::string*> g_folder{nullptr};
thread_local bool t_inside = false;  // building and loading may themselves come to call us

/// Where libtorch_cpu.so was loaded from; empty if it was not.
fs::path torchLibrary() {
    fs::path found;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* result) {
            const fs::path path(info->dlpi_name ? info->dlpi_name : "");
            if (path.filename() != "libtorch_cpu.so") return 0;
            *static_cast<fs::path*>(result) = path;
            return 1;
        },
        &found);
    return found;
}

/// The sources of the library and the script that builds it lie beside this library's folder.
fs::path sourceFolder() {
    Dl_info info{};
    if (!dladdr(reinterpret_cast<const void*>(&frameworkMayHaveCome), &info) || !info.dli_fname) return {};
    std::error_code unused;
    return fs::canonical(info.dli_fname, unused).parent_path().parent_path() / "frameworks" / "torch";
}

/// The environment without what wraps the job: a compiler is not to be recorded.
std::vector<char*> plainEnvironment() {
    std::vector<char*> environment;
    for (char** entry = environ; *entry; entry++) {
        const std::string_view text(*entry);
        const bool wraps = text.starts_with("LD_PRELOAD=") || text.starts_with("LD_LIBRARY_PATH=") ||
                           text.starts_with("CUDA_INJECTION64_PATH=");
        if (!wraps) environment.push_back(*entry);
    }
    environment.push_back(nullptr);
    return environment;
}

struct Answer {
    int status = -1;
    std::string text;  ///< last line of its standard output
};

Answer ask(const fs::path& script, const fs::path& argument) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string shell = "/bin/sh", file = script.string(), folder = argument.string();
    char* arguments[] = {shell.data(), file.data(), folder.data(), nullptr};
    std::vector<char*> environment = plainEnvironment();
    pid_t child = -1;
    const int error = posix_spawn(&child, "/bin/sh", &actions, nullptr, arguments, environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    Answer answer;
    if (error == 0) {
        char piece[4096];
        for (ssize_t got; (got = read(ends[0], piece, sizeof piece)) > 0;)
            answer.text.append(piece, static_cast<size_t>(got));
        waitpid(child, &answer.status, 0);
    }
    close(ends[0]);
    while (!answer.text.empty() && answer.text.back() == '\n') answer.text.pop_back();
    answer.text.erase(0, answer.text.rfind('\n') + 1);
    return answer;
}

/// Empty when it worked, else why not.
std::string install(const fs::path& library) {
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return dlerror();
    auto start = reinterpret_cast<RankscopeInstallOperators>(dlsym(handle, "rankscopeInstallOperators"));
    if (!start) return library.string() + " is no library of operators";
    return start(&operatorHooks()) ? "" : library.string() + " was built for another version of the virtual GPUs";
}

std::string buildAndInstall(const fs::path& torch) {
    if (const char* given = std::getenv("RANKSCOPE_TORCH_LIBRARY"); given && *given) return install(given);
    const fs::path script = sourceFolder() / "build_library.sh";
    if (access(script.c_str(), R_OK) != 0) return script.string() + " is not there";
    const Answer answer = ask(script, torch.parent_path().parent_path());
    if (answer.status != 0) return answer.text.empty() ? script.string() + " failed" : answer.text;
    return install(answer.text);
}

}  // namespace

void frameworkMayHaveCome() {
    g_look.store(true, std::memory_order_release);
}

const std::string& frameworkFolder() {
    static const std::string none;
    const std::string* folder = g_folder.load(std::memory_order_acquire);
    return folder ? *folder : none;
}

bool isFirstRank() {
    const char* rank = std::getenv("RANK");
    return !rank || std::string_view(rank) == "0";
}

void loadFrameworkLibrary() {
    if (!g_look.load(std::memory_order_acquire) || t_inside) return;
    static std::mutex mutex;
    static bool isDone = false;
    t_inside = true;
    {
        std::lock_guard guard(mutex);
        g_look.store(false, std::memory_order_release);
        const fs::path torch = isDone ? fs::path() : torchLibrary();
        const char* given = std::getenv("RANKSCOPE_TORCH_LIBRARY");
        if (!torch.empty() && !g_folder.load(std::memory_order_relaxed))
            g_folder.store(new std::string(torch.parent_path()), std::memory_order_release);
        if (!torch.empty() && !(given && std::string_view(given) == "off")) {
            isDone = true;
            const std::string trouble = buildAndInstall(torch);
            if (!trouble.empty() && isFirstRank())
                std::fprintf(stderr,
                             "rankscope virtual GPUs: PyTorch's operators stay unknown: %s. Kernels are priced by name "
                             "and grid, and values that the job reads back are not computed.\n",
                             trouble.c_str());
        }
    }
    t_inside = false;
}

}  // namespace rankscope::vgpu
