// SPDX-License-Identifier: Apache-2.0
// Files that people name, or that lie in a run: whoever wrote them may have meant harm.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace rankscope::store {

/// More than any description, advice, baseline or configuration needs.
inline constexpr uint64_t kLargestInputBytes = uint64_t{64} << 20;

/// The text of a file that is read as a whole. Throws Error for what is no file (a pipe would be waited for, a device
/// may have no end), cannot be read or is larger than `mostBytes`.
std::string readInputText(const std::filesystem::path& file, uint64_t mostBytes = kLargestInputBytes);

}  // namespace rankscope::store
