// SPDX-License-Identifier: Apache-2.0
// cut_at_random PROCESSES SEED [all]: one after another, processes of two threads make GPU calls, while their
// recording's rings, or all of its files, are cut off (`: > capture/*`) or read at random moments. Prints how many were
// hurt, the calls that the others made, and how many files were cut.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <random>
#include <string>
#include <system_error>
#include <thread>

#include "gpu_calls.h"

namespace {

namespace fs = std::filesystem;
using Microseconds = std::chrono::microseconds;

struct Shared {
    std::atomic<bool> isOver{false};
    std::atomic<long> calls{0};
};

int work(Shared& shared) {
    const auto call = [&shared] {
        while (!shared.isOver) {
            callGpu(5);
            shared.calls += 5;
            std::this_thread::sleep_for(Microseconds(200));  // a ring that is full would only make room for less
        }
        callGpu(100);
        shared.calls += 100;
    };
    std::thread other(call);
    call();
    other.join();
    return 6;
}

bool isOf(const fs::path& file, pid_t process, const char* ending) {
    return file.extension() == ending &&
           file.filename().string().find("." + std::to_string(process) + ".") != std::string::npos;
}

bool hasRing(const fs::path& folder, pid_t process) {
    for (const auto& entry : fs::directory_iterator(folder))
        if (isOf(entry.path(), process, ".ring")) return true;
    return false;
}

int cutOff(const fs::path& folder, pid_t process, bool all) {
    int cut = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().string();
        if (!isOf(name, process, ".ring") && !(all && isOf(name, process, ".cap"))) continue;
        chmod(name.c_str(), 0600);
        if (truncate(name.c_str(), 0) == 0) ++cut;
    }
    return cut;
}

void read(const fs::path& folder, pid_t process) {
    for (const auto& entry : fs::directory_iterator(folder))
        if (isOf(entry.path(), process, ".ring"))
            if (const int file = open(entry.path().c_str(), O_RDONLY); file >= 0) close(file);
}

}  // namespace

int main(int count, char** words) {
    const int processes = std::atoi(words[1]);
    std::mt19937 random(static_cast<unsigned>(std::atoi(words[2])));
    const bool all = count > 3;
    const char* folder = std::getenv("RANKSCOPE_DIR");
    int hurt = 0, cut = 0;
    long calls = 0;
    for (int i = 0; i < processes; ++i) {
        void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        auto& shared = *new (memory) Shared;
        const pid_t process = fork();
        if (process == 0) std::exit(work(shared));
        while (shared.calls == 0 || (folder != nullptr && !hasRing(folder, process))) std::this_thread::yield();
        const auto pause = [&random] { std::this_thread::sleep_for(Microseconds(random() % 60'000)); };
        pause();
        if (folder != nullptr && random() % 4 == 0) {
            read(folder, process);
            pause();
            std::this_thread::sleep_for(Microseconds(120'000));  // until the next look, that lets no other in meanwhile
        }
        if (folder != nullptr) cut += cutOff(folder, process, all);
        pause();
        shared.isOver = true;
        int status = 0;
        waitpid(process, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 6) ++hurt;
        calls += shared.calls;
    }
    std::printf("%d hurt, %ld calls, %d files cut\n", hurt, calls, cut);
}
