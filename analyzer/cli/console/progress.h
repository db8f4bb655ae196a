// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "analyzer/cli/console/console.h"

namespace rankscope::cli {

/// Says on stderr, from two seconds on, what takes so long and for how long it has: one line, which is taken away again
/// when this object ends. Silent where stderr is no terminal, and with -q. Nothing else may be said meanwhile.
class Progress {
  public:
    Progress(const Console& console, std::string what);
    ~Progress() { end(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Tells how much is done, for example "3 of 8: rank3.json". From any thread.
    void at(std::string part);
    /// Takes the line away.
    void end();

  private:
    void show();

    std::string m_what;
    std::string m_part;
    bool m_ended = false;
    std::mutex m_mutex;
    std::condition_variable m_change;
    std::thread m_thread;
};

}  // namespace rankscope::cli
