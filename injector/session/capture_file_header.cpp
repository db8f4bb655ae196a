// SPDX-License-Identifier: Apache-2.0
#include "injector/session/capture_file_header.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "injector/text.h"

#ifndef RANKSCOPE_VERSION
#define RANKSCOPE_VERSION "unknown"
#endif

namespace rankscope::injector {
namespace {

template <size_t N>
size_t readFile(const char* path, char (&into)[N]) noexcept {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const ssize_t got = ::read(fd, into, N - 1);
    ::close(fd);
    const size_t length = got > 0 ? static_cast<size_t>(got) : 0;
    into[length] = '\0';
    return length;
}

int64_t clockNs(clockid_t clock) noexcept {
    timespec time{};
    clock_gettime(clock, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

void fillFileHeader(capture::FileHeader& header, const Config& config, const ProcessIdentity& identity) noexcept {
    header.clockKind = config.cuptiClock ? capture::ClockKind::cupti : capture::ClockKind::realtime;
    // The virtual device library says so itself; a real one has no such symbol.
    header.virtualGpu =
        dlsym(RTLD_DEFAULT, "rankscopeVgpuHostWork") != nullptr || std::getenv("RANKSCOPE_VGPU_JOB") != nullptr ? 1 : 0;
    header.pid = static_cast<int32_t>(getpid());
    header.parentPid = static_cast<int32_t>(getppid());
    header.realtimeNs = clockNs(CLOCK_REALTIME);
    header.monotonicNs = clockNs(CLOCK_MONOTONIC);
    header.rank = identity.rank;
    header.localRank = identity.localRank;
    header.worldSize = identity.worldSize;
    header.attempt = identity.attempt;
    copyText(header.identitySource, identity.source);
    copyText(header.jobId, identity.jobId);
    copyText(header.injectorVersion, RANKSCOPE_VERSION);
    const char* host = std::getenv("RANKSCOPE_HOST");
    if (host != nullptr && host[0] != '\0')
        copyText(header.host, host);
    else if (gethostname(header.host, sizeof header.host - 1) != 0)
        copyText(header.host, "unknown");
    for (char& c : header.host)
        if (c == '/') c = '_';
    char text[4096];
    if (readFile("/proc/sys/kernel/random/boot_id", text) > 0) {
        text[std::strcspn(text, "\n")] = '\0';
        copyText(header.bootId, text);
    }
    const ssize_t length = readlink("/proc/self/exe", text, sizeof text - 1);
    if (length > 0) {
        text[length] = '\0';
        copyText(header.executable, text);
    }
}

int64_t processStartTicks() noexcept {
    char text[2048];
    if (readFile("/proc/self/stat", text) == 0) return 0;
    // The name in parentheses may hold anything, so count from its end: the start time is the 20th field behind it.
    const char* at = std::strrchr(text, ')');
    if (at == nullptr) return 0;
    for (int field = 0; field < 20; ++field) {
        at = std::strchr(at + 1, ' ');
        if (at == nullptr) return 0;
    }
    char digits[24] = {};
    const size_t length = std::strcspn(at + 1, " ");
    if (length >= sizeof digits) return 0;
    std::memcpy(digits, at + 1, length);
    int64_t ticks = 0;
    parseNumber(digits, ticks);
    return ticks;
}

bool readThreadName(char (&name)[17]) noexcept {
    return prctl(PR_GET_NAME, name, 0, 0, 0) == 0;
}

}  // namespace rankscope::injector
