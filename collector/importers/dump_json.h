// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "collector/importers/dump_tree.h"

namespace rankscope::collector {

/// A JSON document as a tree of values.
struct DumpJson {
    DumpNode root = DumpTree::kNone;  ///< kNone: nothing of it can be used, and `problem` says why
    bool cut = false;                 ///< it ends before its last bracket: what stands in front of that was read
    std::string problem;              ///< for the end of a sentence
    std::string text;                 ///< what the tree's texts are views of
};

/// Reads `json`; the tree's texts live as long as the result does, wherever it is moved to.
DumpJson readDumpJson(std::string_view json, DumpTree& tree);

}  // namespace rankscope::collector
