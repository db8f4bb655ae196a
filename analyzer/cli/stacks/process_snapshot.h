// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rankscope::cli {

// What a thread was when it was stopped for a moment.
struct ThreadSnapshot {
    pid_t tid = 0;
    char state = '?';  // of /proc before it was stopped
    std::string name;
    std::vector<uint64_t> registers;  // by their DWARF numbers (System V ABI of the machine); empty: not read
    uint64_t programCounter = 0;
    uint64_t stackStart = 0;  // address of stack[0]
    std::vector<uint8_t> stack;
};

struct ProcessSnapshot {
    pid_t pid = 0;
    std::string maps;                     // /proc/PID/maps
    std::string refused;                  // why no thread at all might be read; empty: some might
    int unread = 0;                       // threads that did not stop in time, as those in an uninterruptible wait
    int untraceable = 0;                  // that alone might not be read: ended, or under a debugger
    int beyond = 0;                       // that are more than are read of one process, and not in `threads`
    int64_t longestStopNs = 0;            // for which one thread was stopped
    std::vector<ThreadSnapshot> threads;  // the main thread first
};

// Stops each thread of a process while its registers and the top of its stack are copied, one after the other, mostly
// for less than a millisecond each (longestStopNs tells the longest).
// The process notices nothing else: no signal is sent, a stopped process stays stopped. For processes that this one is
// an ancestor of, which is what the kernel allows without privileges (Yama's ptrace_scope 1). A process that ends
// meanwhile gives what was read. Throws std::system_error where no thread can be started.
ProcessSnapshot takeSnapshot(pid_t pid);

}  // namespace rankscope::cli
