// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/live/metrics_server.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "analyzer/cli/console/errors.h"

#ifdef RANKSCOPE_HAVE_HTTPLIB
#include <httplib.h>
#endif

namespace rankscope::cli {

std::optional<MetricsAddress> parseMetricsAddress(const std::string& text) {
    MetricsAddress address;
    const size_t colon = text.rfind(':');
    const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
    if (colon != std::string::npos) {
        address.host = text.substr(0, colon);
        const bool isBracketed = address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
        if (isBracketed) address.host = address.host.substr(1, address.host.size() - 2);
        if (address.host.empty() || (!isBracketed && address.host.find(':') != std::string::npos)) return std::nullopt;
    }
    constexpr int kMostPort = 65535;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (port.empty() || error != std::errc() || end != port.data() + port.size()) return std::nullopt;
    if (address.port < 0 || address.port > kMostPort) return std::nullopt;
    return address;
}

#ifdef RANKSCOPE_HAVE_HTTPLIB

struct MetricsServer::State {
    MetricsAddress address;
    httplib::Server server;
    std::mutex lock;
    std::string text;
    std::thread thread;
    std::atomic<bool> hasEnded = false;  // the thread's listening
};

bool canServeMetrics() {
    return true;
}

MetricsServer::MetricsServer(const MetricsAddress& address) : m_state(std::make_unique<State>()) {
    httplib::Server& server = m_state->server;
    m_state->address = address;
    // The library would let a second program have the port, too, and each get some of the requests.
    server.set_socket_options([](socket_t socket) {
        const int yes = 1;
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    constexpr int kThreads = 2, kSeconds = 5, kMostRequests = 100;
    constexpr size_t kMostBytes = 1 << 16;
    server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server.set_read_timeout(kSeconds);
    server.set_write_timeout(kSeconds);
    server.set_keep_alive_timeout(kSeconds);
    server.set_keep_alive_max_count(kMostRequests);
    server.set_payload_max_length(kMostBytes);
    server.Get("/metrics", [state = m_state.get()](const httplib::Request& request, httplib::Response& response) {
        const std::lock_guard lock(state->lock);
        // Scrapers that do not ask for OpenMetrics read the same lines as Prometheus' older text format.
        const bool isOpenMetrics = request.get_header_value("Accept").find("openmetrics") != std::string::npos;
        response.set_content(state->text, isOpenMetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                                        : "text/plain; version=0.0.4; charset=utf-8");
    });
    server.Get("/", [](const httplib::Request&, httplib::Response& response) {
        response.set_content("rankscope: see /metrics\n", "text/plain");
    });
    errno = 0;
    if (address.port == 0)
        m_state->address.port = server.bind_to_any_port(address.host);
    else if (!server.bind_to_port(address.host, address.port))
        m_state->address.port = -1;
    if (m_state->address.port < 0)
        throw VerbError(kExitInput,
                        fmt::format("--metrics: {} port {} cannot be had: {}", address.host, address.port,
                                    errno != 0 ? std::strerror(errno) : "no such address"),
                        "another job or program may have it: choose another port, or 0 for a free one");
    m_state->thread = std::thread([state = m_state.get()] {
        state->server.listen_after_bind();
        state->hasEnded = true;
    });
}

MetricsServer::~MetricsServer() {
    // To a server that does not listen yet stop() means nothing: it would begin to, and never end.
    while (!m_state->server.is_running() && !m_state->hasEnded)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    m_state->server.stop();
    if (m_state->thread.joinable()) m_state->thread.join();
}

void MetricsServer::give(std::string text) {
    const std::lock_guard lock(m_state->lock);
    m_state->text = std::move(text);
}

std::string MetricsServer::url() const {
    const MetricsAddress& address = m_state->address;
    const bool isV6 = address.host.find(':') != std::string::npos;
    return fmt::format("http://{}{}{}:{}/metrics", isV6 ? "[" : "", address.host, isV6 ? "]" : "", address.port);
}

#else

struct MetricsServer::State {};
bool canServeMetrics() {
    return false;
}
MetricsServer::MetricsServer(const MetricsAddress&) {
    throw VerbError(kExitInput, "--metrics: this rankscope was built without cpp-httplib",
                    "install libcpp-httplib-dev and build again, or use --metrics-file");
}
MetricsServer::~MetricsServer() = default;
void MetricsServer::give(std::string) {}
std::string MetricsServer::url() const {
    return {};
}

#endif

}  // namespace rankscope::cli
