// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/verbs/metrics_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "analyzer/cli/live/metrics_server.h"

namespace rankscope::cli {

void addMetricsOptions(CLI::App& verb, std::string& address, std::string& file) {
    verb.add_option("--metrics", address,
                    "Serve metrics of the running job for Prometheus (docs/metrics.md) on this port of the loopback "
                    "interface, or on ADDRESS:PORT; port 0: a free one")
        ->type_name("PORT")
        ->check([](const std::string& text) {
            if (!parseMetricsAddress(text))
                return fmt::format("'{}' is no port: write 0 to 65535, or ADDRESS:PORT", text);
            return canServeMetrics() ? std::string()
                                     : "this rankscope was built without cpp-httplib (libcpp-httplib-dev)";
        });
    verb.add_option("--metrics-file", file,
                    "Keep the same in a file while the job runs, for node_exporter's textfile collector (NAME.prom)")
        ->type_name("FILE");
}

}  // namespace rankscope::cli
