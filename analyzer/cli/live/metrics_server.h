// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace rankscope::cli {

// "9400", "0.0.0.0:9400", "[::1]:9400"; without an address the loopback interface. Port 0: a free one.
struct MetricsAddress {
    std::string host = "127.0.0.1";
    int port = 0;
};
std::optional<MetricsAddress> parseMetricsAddress(const std::string& text);

// False: this rankscope was built without cpp-httplib.
bool canServeMetrics();

// Answers GET /metrics with what it was given last, on threads of its own. Half a request, or one that is too large or
// too slow, is dropped.
class MetricsServer {
  public:
    // Throws VerbError (exit code 3) where the address cannot be had: by its port another program, or another job.
    explicit MetricsServer(const MetricsAddress& address);
    ~MetricsServer();
    MetricsServer(const MetricsServer&) = delete;
    MetricsServer& operator=(const MetricsServer&) = delete;

    void give(std::string text);
    // "http://127.0.0.1:9400/metrics"
    std::string url() const;

  private:
    struct State;
    std::unique_ptr<State> m_state;
};

}  // namespace rankscope::cli
