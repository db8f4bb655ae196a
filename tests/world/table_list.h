// SPDX-License-Identifier: Apache-2.0
// Lists tables of nccl-tests with what a user tells of the machines that they are of.
#pragma once

#include <string>
#include <vector>

#include "collector/store/vocabulary.h"

namespace rankscope {

struct ListedTable {
    std::string file;
    std::string links;  // by the makers' data sheets, as --links takes them
    store::Op op = store::Op::unknown;
    bool pcie = false;        // what is told of a node are its PCIe slots, of whatever rate
    bool hostMemory = false;  // and these boards have no peer access
    bool nvls = false;        // its NVSwitches add up
};

/// Reads a file of lines "FILE LINKS [OPERATION] [pcie] [host_memory] [nvls]"; lines without links are left out.
std::vector<ListedTable> readTableList(const std::string& file);

/// Lists the recorded tables in a folder.
std::vector<ListedTable> recordedTables(const std::string& folder);

}  // namespace rankscope
