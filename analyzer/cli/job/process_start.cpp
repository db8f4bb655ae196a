// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/process_start.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace rankscope::cli {

uint64_t processStart(pid_t pid) {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    const size_t afterName = text.rfind(')');
    if (afterName == std::string::npos) return 0;
    std::istringstream fields(text.substr(afterName + 1));
    std::string field;
    for (int i = 3; i <= 22 && fields >> field; ++i)
        if (i == 22) return std::stoull(field);
    return 0;
}

}  // namespace rankscope::cli
