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
            else if (word == "host_memory")
                table.hostMemory = true;
            else if (word == "nvls")
                table.nvls = true;
            else
                table.op = store::fromText<store::Op>(word);
        }
        if (!table.links.empty()) tables.push_back(std::move(table));
    }
    return tables;
}

std::vector<ListedTable> recordedTables(const std::string& folder) {
    // A100: 12 links of NVLink 3, 25 GB/s each way; p4d: 4 x 100 Gbit/s for 8 ranks. The table of two nodes does not
    // name its operation; its bandwidths are an all-gather's.
    std::vector<ListedTable> tables;
    for (const char* name : {"allgather", "allreduce", "alltoall", "broadcast", "reduce", "reducescatter"})
        tables.push_back({folder + "/superbench_a100x8/nccl_" + name + ".log", "intra:gbps=300"});
    tables.push_back(
        {folder + "/p4d_a100x16_efa/nccl-tests_slurm-104.out", "intra:gbps=300;inter:gbps=6.25", store::Op::allGather});
    return tables;
}

}  // namespace rankscope
