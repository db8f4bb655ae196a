// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "analyzer/cli/job/job_process.h"

namespace rankscope::cli {

// A program of ours that works beside a job: in a process group of its own, so that the terminal's signals do not reach
// it, at a lower priority, and gone when this process is. It learns that the job has ended by the end of its standard
// input. Whatever becomes of it, nobody waits for it long: a driver or a file server that hangs holds its process, not
// ours. Started and ended by a process of one thread.
class HelperProgram {
  public:
    HelperProgram() = default;
    ~HelperProgram() { end(); }
    HelperProgram(const HelperProgram&) = delete;
    HelperProgram& operator=(const HelperProgram&) = delete;

    // Its standard output goes nowhere; its standard error is ours with `speaks`, else it goes nowhere either. False:
    // it cannot be started; the job goes on without it.
    bool start(const ProcessToStart& program, bool speaks) noexcept;

    // Tells it that the job has ended and waits for its last words, a second and a half at most.
    void end() noexcept;

  private:
    pid_t m_pid = 0;
    int m_input = -1;  // our end of its standard input
};

}  // namespace rankscope::cli
