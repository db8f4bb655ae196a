// SPDX-License-Identifier: Apache-2.0
// cut_ring CALLS: makes CALLS GPU calls, cuts off the ring files of its own recording (`: > capture/*.ring`), and makes
// CALLS more. Where that succeeded it first gives the recording the time to see it, until the capture file tells so.
#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "gpu_calls.h"

namespace {

std::vector<std::string> filesOf(const char* folder, const std::string& ending) {
    std::vector<std::string> files;
    DIR* entries = opendir(folder);
    while (const dirent* entry = entries != nullptr ? readdir(entries) : nullptr) {
        const std::string name = entry->d_name;
        if (name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending)
            files.push_back(std::string(folder) + "/" + name);
    }
    if (entries != nullptr) closedir(entries);
    return files;
}

bool tellsOfIt(const std::string& capture) {
    std::ifstream file(capture, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    return bytes.find("cut off by somebody") != std::string::npos;
}

}  // namespace

int main(int, char** argv) {
    const int calls = std::atoi(argv[1]);
    callGpu(calls);
    if (const char* folder = std::getenv("RANKSCOPE_DIR")) {
        bool isCut = false;
        for (const std::string& ring : filesOf(folder, ".ring")) isCut = truncate(ring.c_str(), 0) == 0 || isCut;
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (isCut && !tellsOfIt(filesOf(folder, ".cap").front()) && std::chrono::steady_clock::now() < until)
            std::this_thread::yield();
    }
    callGpu(calls);
    std::puts("well");
    return 6;
}
