// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/output_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "analyzer/cli/errors.h"

namespace rankscope::cli {

void writeOutputFile(const std::string& text, const std::string& name) {
    std::error_code error;
    std::string file = name;
    if (std::filesystem::is_symlink(name, error)) {
        const auto target = std::filesystem::weakly_canonical(name, error);
        if (!error) file = target.string();
    }
    const bool inPlace = std::filesystem::exists(file, error) && !std::filesystem::is_regular_file(file, error);
    const std::string beside = inPlace ? file : file + ".new";
    std::ofstream stream(beside, std::ios::binary);
    stream << text;
    stream.close();
    if (inPlace) {
        if (stream) return;
        throw VerbError(kExitInput, fmt::format("cannot write {}", name), "choose another place with -o");
    }
    error.clear();
    if (stream) std::filesystem::rename(beside, file, error);
    if (stream && !error) return;
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);
    throw VerbError(kExitInput, fmt::format("cannot write {}", name), "choose another place with -o");
}

}  // namespace rankscope::cli
