// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rankscope::cli {

// A process of the job that records, as it was seen at some moment.
struct WatchedProcess {
    pid_t pid = 0;
    uint64_t startTicks = 0;  // tells it from a later one with the same pid
    std::string capture;      // name of its capture file
    int32_t rank = -1;        // as the capture began, -1 unknown
    uint64_t progress = 0;    // records so far that show that it gets on
};

struct StalledProcess {
    WatchedProcess process;
    int64_t stalledNs = 0;
};

// Decides which processes stand still: those of which no progress was seen for the time-out. Each is told once a stall,
// and again every kAgainNs while it lasts. Processes that never got on (workers of data loaders) are told only where
// none of the others gets on, and never where a process may work unseen. Time in which nobody looked, because the
// wrapper was stopped, is no time of a stall.
class StallWatch {
  public:
    // A job may hang in one place, be looked at, and hang on: what it stands in changes seldom. Ten minutes, so that an
    // hour of hanging leaves six readings and not sixty.
    static constexpr int64_t kAgainNs = 600'000'000'000;

    // `mayWorkUnseen`: the recording has no device activity, so that a process that calls no NCCL shows no progress.
    StallWatch(int64_t timeoutNs, int64_t periodNs, bool mayWorkUnseen = false)
        : m_timeoutNs(timeoutNs), m_periodNs(periodNs), m_mayWorkUnseen(mayWorkUnseen) {}

    // `nowNs`: of a clock that does not jump.
    std::vector<StalledProcess> look(const std::vector<WatchedProcess>& processes, int64_t nowNs);

    // Is called between looks while what was told is being read: nobody looks, but no process is stopped meanwhile.
    void stillThere(int64_t nowNs);

  private:
    struct Seen {
        uint64_t progress = 0;
        int64_t sinceNs = 0;  // of the last progress, or when it was first seen
        int64_t toldNs = -1;  // in this stall; -1: not
    };

    int64_t m_timeoutNs;
    int64_t m_periodNs;
    bool m_mayWorkUnseen;
    int64_t m_lookedNs = -1;
    std::map<std::pair<pid_t, uint64_t>, Seen> m_seen;
};

}  // namespace rankscope::cli
