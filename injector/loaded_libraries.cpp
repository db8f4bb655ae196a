// SPDX-License-Identifier: Apache-2.0
#include "injector/loaded_libraries.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "injector/record/mutex.h"

namespace rankscope::injector {
namespace {

constinit Mutex g_mutex;
constinit std::atomic<bool> g_isForked{false};

struct Search {
    const char* prefix;
    int skip;  ///< matches before the one looked for
    char* path;
    size_t pathBytes;

    bool matches(const char* candidate) noexcept {
        const char* slash = std::strrchr(candidate, '/');
        if (std::strncmp(slash == nullptr ? candidate : slash + 1, prefix, std::strlen(prefix)) != 0) return false;
        if (std::strlen(candidate) >= pathBytes || skip-- > 0) return false;
        std::strcpy(path, candidate);
        return true;
    }
};

/// Only copies the path: opening it here would take the loader's locks in the wrong order.
int visit(dl_phdr_info* info, size_t, void* data) noexcept {
    return info->dlpi_name != nullptr && static_cast<Search*>(data)->matches(info->dlpi_name) ? 1 : 0;
}

/// The same from /proc/self/maps, without any lock. A library has several lines in a row there.
bool searchMaps(Search& search) noexcept {
    const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char line[4096 + 128];
    char last[4096] = "";
    size_t length = 0;
    bool found = false;
    char chunk[1024];
    for (ssize_t got; !found && (got = ::read(fd, chunk, sizeof chunk)) > 0;)
        for (ssize_t i = 0; i < got && !found; ++i) {
            if (chunk[i] != '\n') {
                if (length < sizeof line - 1) line[length++] = chunk[i];
                continue;
            }
            line[length] = '\0';
            length = 0;
            const char* path = std::strchr(line, '/');
            if (path == nullptr || std::strlen(path) >= sizeof last || std::strcmp(path, last) == 0) continue;
            std::strcpy(last, path);
            found = search.matches(path);
        }
    ::close(fd);
    return found;
}

}  // namespace

bool findLoadedLibrary(const char* prefix, int copy, char* path, size_t pathBytes) noexcept {
    Search search{prefix, copy, path, pathBytes};
    if (g_isForked.load(std::memory_order_relaxed)) return searchMaps(search);
    Lock lock(g_mutex);
    return dl_iterate_phdr(visit, &search) != 0;
}

void lockLoadedLibraries() noexcept {
    g_mutex.lock();
}

void unlockLoadedLibraries() noexcept {
    g_mutex.unlock();
}

void renewLoadedLibraries() noexcept {
    g_mutex.renew();
    g_isForked.store(true, std::memory_order_relaxed);
}

}  // namespace rankscope::injector
