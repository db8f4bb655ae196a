// SPDX-License-Identifier: Apache-2.0
// Draws that are the same on every machine.
#pragma once

#include <cstdint>

namespace rankscope::reference {

/// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
inline uint64_t seededHash(uint64_t seed, uint64_t value) {
    uint64_t mixed = seed * 0x9e3779b97f4a7c15ull + value + 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    return mixed ^ (mixed >> 31);
}

}  // namespace rankscope::reference
