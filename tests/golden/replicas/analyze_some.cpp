// SPDX-License-Identifier: Apache-2.0
// rankscope_test_replicas RUN [TASKS]: the report of RUN as JSON, with as few of its replicas replayed as may be.
// TASKS: more cannot be held. Jobs for which `rankscope analyze` leaves some out are too large for a test.
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <exception>

#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"

int main(int argc, char** argv) {
    rankscope::report::AnalyzeOptions options;
    options.storeResults = false;
    options.replayed.enoughTasks = 0;
    const char* const tasks = argc == 3 ? argv[2] : "6000000";
    const auto* const end = tasks + std::strlen(tasks);
    if (argc < 2 || argc > 3 || std::from_chars(tasks, end, options.replayed.mostTasks).ptr != end) {
        fmt::print(stderr, "usage: {} RUN [TASKS]\n", argv[0]);
        return 2;
    }
    try {
        fmt::print("{}\n", renderJson(rankscope::report::analyze(argv[1], options)));
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return 0;
}
