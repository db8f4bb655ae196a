// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/terminal_size.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace rankscope::cli {

size_t columnsOfStdout(size_t most) {
    // Narrower, the texts beside the labels of a report have no room for a word: labels take up to 20, words up to 20.
    constexpr size_t kFewest = 40;
    if (const char* told = std::getenv("COLUMNS"); told != nullptr) {
        size_t columns = 0;
        const char* end = told + std::strlen(told);
        if (const auto read = std::from_chars(told, end, columns); read.ec == std::errc() && read.ptr == end && columns)
            return std::max(columns, kFewest);
    }
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return most;
    return std::clamp<size_t>(size.ws_col, kFewest, most);
}

}  // namespace rankscope::cli
