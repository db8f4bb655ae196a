// SPDX-License-Identifier: Apache-2.0
// Reads the data of a Python pickle and runs nothing of it.
//
// Source of the opcodes: Python's Lib/pickletools.py, protocols 2 to 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collector/importers/dump_tree.h"

namespace rankscope::collector {

/// What became of a pickle.
struct PickleResult {
    enum class State : uint8_t {
        whole,    ///< `root` is all of it
        cut,      ///< the bytes end before the pickle does: `root` holds what stands in front of that
        refused,  ///< it asks for code, for more memory than is given, or is no pickle: there is no `root`
    };
    State state = State::refused;
    DumpNode root = DumpTree::kNone;
    size_t offset = 0;    ///< of the opcode at which reading ended
    std::string problem;  ///< of what was cut or refused, for the end of a sentence
};

/// An interpreter of the opcodes that make None, booleans, numbers, texts, bytes, lists, tuples, sets and dictionaries
/// of them. GLOBAL, REDUCE, BUILD and all others that name or call something are refused with their names. It keeps
/// its own stack, so that no nesting exhausts the program's; every length, index and count is checked, and `tree` ends
/// what grows too large. Texts in `tree` are views of `bytes`.
PickleResult readPickle(std::string_view bytes, DumpTree& tree);

}  // namespace rankscope::collector
