// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "reference/vgpu/device/wait_keys.h"
#include "reference/vgpu/engine/arena.h"

namespace rankscope::vgpu {

/// What the calling process's end can be seen by (wait_keys.h): its number, and pipes that it only writes, whose
/// readers find their end. Of one that it reads as well, as queues are that processes share, others hold the other end.
/// Allocates nothing: the process may be in a handler.
class EndKeys {
  public:
    EndKeys() {
        add(childKey(getpid()));
        add(anyChildKey(getppid()));
        constexpr int kMostDescriptors = 1024;  // of a worker some dozens are open
        for (int descriptor = 0; descriptor < kMostDescriptors; descriptor++) look(descriptor);
        for (size_t i = 0; i < m_written.count; i++)
            if (!m_read.has(m_written.keys[i])) add(m_written.keys[i]);
    }
    const uint64_t* begin() const { return m_keys; }
    const uint64_t* end() const { return m_keys + m_count; }
    /// kMaxEndKeys at most; further pipes are left out.
    uint32_t count() const { return m_count; }

  private:
    struct Pipes {
        static constexpr size_t kMost = 256;  // two queues and a sentinel for each of some sixty workers
        uint64_t keys[kMost];
        size_t count = 0;
        void add(uint64_t key) {
            if (count < kMost) keys[count++] = key;
        }
        bool has(uint64_t key) const { return std::find(keys, keys + count, key) != keys + count; }
    };

    void look(int descriptor) {
        struct stat status;
        if (fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
        const int access = fcntl(descriptor, F_GETFL) & O_ACCMODE;
        (access == O_WRONLY ? m_written : m_read).add(inodeKey(status));
    }
    void add(uint64_t key) {
        if (m_count < kMaxEndKeys && std::find(m_keys, m_keys + m_count, key) == m_keys + m_count)
            m_keys[m_count++] = key;
    }

    Pipes m_written, m_read;
    uint64_t m_keys[kMaxEndKeys];
    uint32_t m_count = 0;
};

}  // namespace rankscope::vgpu
