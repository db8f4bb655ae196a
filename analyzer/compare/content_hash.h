// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace rankscope::compare {

/// The same for the same bytes on every machine and in every version (FNV-1a of 64 bits,
/// http://www.isthe.com/chongo/tech/comp/fnv/).
constexpr uint64_t contentHash(std::string_view bytes) noexcept {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

}  // namespace rankscope::compare
