// SPDX-License-Identifier: Apache-2.0
// Waits for what comes from outside the process, or may: files, pipes, sockets, children, memory shared with others.
//
// What goes through a pipe, an eventfd, a pair of sockets or a connection by a local (AF_UNIX) address carries the
// clock of who wrote it, between processes too, and so do posts of semaphores that processes share. Processes that were
// forked from one another write in the order of their clocks. Other sockets carry none: an answer that comes from there
// costs no time, since it went through a server that serves all ranks in whatever order they come.
#pragma once

#include <cstdint>
#include <span>

#include "reference/vgpu/device/local_process.h"

namespace rankscope::vgpu::threads {

/// While it lives, the calling thread is blocked in `call`, in which libc itself lets it sleep.
class BlockedOutside {
  public:
    /// `keys`: the pipes that it waits for. `timeoutNs`: how long at most, negative: for ever.
    explicit BlockedOutside(const char* call, std::span<const uint64_t> keys = {}, int64_t timeoutNs = -1);
    ~BlockedOutside();
    BlockedOutside(const BlockedOutside&) = delete;
    BlockedOutside& operator=(const BlockedOutside&) = delete;
    /// How long the thread may sleep at a stretch, in ms, of `wantedMs` (negative: for ever) that are left.
    static int stretchMs(int64_t wantedMs);
    /// Sleeps here instead, for `ms` at most: true if somebody with a clock has told of what it waits for.
    bool isTold(int64_t ms);
    /// Somebody with a clock has told of something that it waits for, and another thread has read all of it.
    bool wasToldInVain(std::span<const uint64_t> keys) const;
    /// Nothing came in a stretch: true if the wait is over, on the virtual clock or, with `isRealTimeUp`, because that
    /// stands still.
    bool isOver(bool isRealTimeUp);

  private:
    ThreadClock* m_clock;
    bool m_looksOn = false;
    int64_t m_deadlineNs;
};

/// What a descriptor is called when it is read, or 0: nothing that carries a clock. An end of a pair of sockets that is
/// written is called as the other end is.
uint64_t readKey(int descriptor);
uint64_t writeKey(int descriptor);
/// What a socket is called for LocalProcess::tellSocket; 0: it is none.
uint64_t socketKey(int descriptor);
uint64_t keyOfBytes(std::span<const char> bytes);
/// A connection was accepted: from here on it carries the clock of who asked for it.
void adoptConnection(int descriptor);
void wrote(int descriptor, uint64_t bytes);
void hasRead(int descriptor, int64_t result);
/// The thread has seen the end of the process of that key (wait_keys.h): of a child, or of a pipe that nobody writes
/// any more.
void sawEnd(uint64_t key);
/// A wait has found these to be read: what is there was not there before it was written.
void sawReady(std::span<const int> descriptors);

}  // namespace rankscope::vgpu::threads
