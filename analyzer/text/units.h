// SPDX-License-Identifier: Apache-2.0
// Writes numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rankscope::text {

std::string bytesText(double bytes);                          // 25 MiB
std::string durationText(double ns);                          // 12.3 ms
std::string bandwidthText(double bytesPerSecond);             // 38.4 GB/s, 312 MB/s
std::string percentText(double share);                        // 12.3 %
std::vector<std::string> rankRanges(std::vector<int> ranks);  // "0-2", "4": ascending
std::string rangesText(const std::vector<int>& numbers);      // "3", "0-2, 4-7"
/// "rank 3", "ranks 0-2, 4-7"; "ranks none"; of many, each as far from the next: "ranks 0, 4, ..., 1020 (256 ranks)".
std::string ranksText(const std::vector<int>& ranks);

// Messages of like size are told together: those of class n have from 4^n to 4^(n + 1) bytes; -1 is an unknown size.
int sizeClassOf(int64_t bytes);
std::string sizeClassText(int sizeClass);  // "16 MiB to 64 MiB", "unknown size"

}  // namespace rankscope::text
