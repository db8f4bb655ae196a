// SPDX-License-Identifier: Apache-2.0
// rankscope_test_replicas RUN: the report of RUN as JSON, with as few of its replicas replayed as may be. Jobs for
// which `rankscope analyze` leaves some out are too large for a test.
#include <fmt/format.h>

#include <exception>

#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"

int main(int argc, char** argv) {
    rankscope::report::AnalyzeOptions options;
    options.storeResults = false;
    options.replayed.enoughTasks = 0;
    if (argc != 2) {
        fmt::print(stderr, "usage: {} RUN\n", argv[0]);
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
