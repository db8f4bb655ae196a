// SPDX-License-Identifier: Apache-2.0
#include "tests/world/table_list.h"

#include <fstream>
#include <sstream>

namespace rankscope {

std::vector<ListedTable> readTableList(const std::string& file) {
    std::vector<ListedTable> tables;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        ListedTable table;
        words >> table.file >> table.links;
        for (std::string word; words >> word;) {
            if (word == "pcie")
                table.pcie = true;
            else if (word == "nvls")
                table.nvls = true;
            else
                table.op = store::fromText<store::Op>(word);
        }
        if (!table.links.empty()) tables.push_back(std::move(table));
    }
    return tables;
}

}  // namespace rankscope
