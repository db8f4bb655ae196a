// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collector/ingest/capture_set.h"

namespace rankscope::collector {

class FollowedCapture;

/// What is looked at again and again while it is written: of each capture file a copy that lacks what no look at a
/// later part asks for. Of the file only what has come since is read. Collecting from the copies gives what collecting
/// from the files does (`Collect.WhatIsFollowedIsReadAsFromTheBeginning`).
///
/// Left out are device activity, CUDA calls and network transfers that were over before the part. Calls of NCCL and
/// NVTX ranges stay, since they are numbered and paired from the first one on, and so do texts. A file that is damaged,
/// or whose copy cannot be written, is read itself, each time from its beginning.
class FollowedCaptures {
  public:
    /// `folder`: for the copies, of the caller's own; it is made when it is needed.
    explicit FollowedCaptures(std::filesystem::path folder);
    ~FollowedCaptures();

    /// Goes on with each file and tells it where it is read (CaptureFile::readFrom). Parts must not go back. `threads`
    /// files at a time; 0: one per core.
    void follow(std::vector<CaptureFile>& files, const TimeSpan& part, unsigned threads);

  private:
    std::filesystem::path m_folder;
    std::map<std::string, std::unique_ptr<FollowedCapture>> m_files;  // by path
};

}  // namespace rankscope::collector
