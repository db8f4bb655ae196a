// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/reader_mapped.h"

#include <functional>
#include <memory>
#include <string_view>

#include "collector/importers/mapped_job.h"

namespace rankscope::collector {

Reader mappedReader(const std::filesystem::path& mapping, const std::vector<std::filesystem::path>& files) {
    const auto job = std::make_shared<const MappedJob>(readTraceMapping(mapping), files);
    return {
        .name = "mapped",
        .expected = "a file for the mapping",
        .endings = {".json", ".json.gz"},
        .recognises = [](std::string_view) { return true; },
        .read = [job](const std::filesystem::path& file, const ReadOptions&,
                      const std::function<void(FileRank)>& take) { job->read(file, take); },
    };
}

}  // namespace rankscope::collector
