// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/watch_counters.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace rankscope::capture {

bool readWatched(const char* captureFile, FileHeader& header, WatchCounters& counters) {
    const int descriptor = ::open(captureFile, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return false;
    const bool isRead =
        ::pread(descriptor, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
        ::pread(descriptor, &counters, sizeof counters, kWatchCountersOffset) == static_cast<ssize_t>(sizeof counters);
    ::close(descriptor);
    return isRead && std::memcmp(header.magic, kFileMagic, sizeof header.magic) == 0;
}

}  // namespace rankscope::capture
