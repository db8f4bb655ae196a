// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rankscope::cli {

/// Keeps what this process frees for what it needs next, for good: graphs of jobs are made and freed again and again.
/// Otherwise the kernel takes the pages back and clears them anew, which is a third of the time of `recommend` and a
/// sixth of that of `analyze` (64 and 256 ranks, two cores). Its threads have at most so many `heaps`: those of one
/// heap get what each other freed, and wait for each other to allocate. `analyze`, which reads ranks most of the time,
/// has one a thread; `recommend`, which makes graphs, one: 597 MiB and 6.9 s with it, 664 MiB and 6.5 s with two (64
/// ranks, two threads). Call it before threads are started.
void keepFreedMemory(unsigned heaps);

}  // namespace rankscope::cli
