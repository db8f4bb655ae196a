// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/beside_files.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>

namespace rankscope::collector {

namespace fs = std::filesystem;

std::vector<fs::path> textFilesIn(const std::vector<fs::path>& runDirectories, const std::string& folder) {
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const fs::path& directory : runDirectories)
        for (const auto& entry : fs::directory_iterator(directory / folder, ignored))
            if (entry.path().extension() == ".txt" && entry.is_regular_file(ignored)) files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

std::string wholeText(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace rankscope::collector
