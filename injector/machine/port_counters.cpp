// SPDX-License-Identifier: Apache-2.0
#include "injector/machine/port_counters.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <utility>

#include "injector/machine/host_ports.h"

namespace rankscope::machine {
namespace {

namespace fs = std::filesystem;

/// A file of one number, as counters in sysfs are.
std::optional<int64_t> counter(const fs::path& path) {
    std::ifstream file(path);
    std::string text;
    if (!std::getline(file, text)) return std::nullopt;
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value > INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(value);
}

/// The sum of those that are there; nothing where none is.
std::optional<int64_t> sum(const fs::path& folder, std::initializer_list<const char*> names) {
    std::optional<int64_t> total;
    for (const char* name : names)
        if (const auto one = counter(folder / name)) total = total.value_or(0) + *one;
    return total;
}

/// port_xmit_data and port_rcv_data count in words of four bytes (InfiniBand Architecture 16.1.3.5).
std::optional<int64_t> bytesOfWords(std::optional<int64_t> words) {
    constexpr int64_t kWordBytes = 4;
    if (words) *words = *words > INT64_MAX / kWordBytes ? INT64_MAX : *words * kWordBytes;
    return words;
}

PortCounters ofAdapter(const fs::path& port) {
    const fs::path counters = port / "counters";
    PortCounters result;
    result.sentBytes = bytesOfWords(counter(counters / "port_xmit_data"));
    result.receivedBytes = bytesOfWords(counter(counters / "port_rcv_data"));
    result.errors = sum(counters, {"symbol_error", "port_rcv_errors", "port_rcv_remote_physical_errors",
                                   "local_link_integrity_errors", "excessive_buffer_overrun_errors"});
    result.discards = sum(counters, {"port_xmit_discards", "port_xmit_constraint_errors"});
    result.linkDowns = sum(counters, {"link_downed", "link_error_recovery"});
    return result;
}

PortCounters ofInterface(const fs::path& interface) {
    const fs::path counters = interface / "statistics";
    PortCounters result;
    result.sentBytes = counter(counters / "tx_bytes");
    result.receivedBytes = counter(counters / "rx_bytes");
    result.errors = sum(counters, {"rx_errors", "tx_errors"});
    result.discards = sum(counters, {"rx_dropped", "tx_dropped"});
    result.linkDowns = counter(interface / "carrier_down_count");
    return result;
}

}  // namespace

std::vector<PortCounters> readPortCounters(const char* sysfs) {
    const auto links = std::make_unique<LinkList>();
    addHostPorts(sysfs, *links);
    std::vector<PortCounters> ports;
    for (const Link& link : *links) {
        const std::string name = link.name;
        const size_t slash = name.find('/');
        PortCounters counters = slash == std::string::npos
                                    ? ofInterface(fs::path(sysfs) / "class/net" / name)
                                    : ofAdapter(fs::path(sysfs) / "class/infiniband" / name.substr(0, slash) / "ports" /
                                                name.substr(slash + 1));
        counters.name = name;
        if (counters.sentBytes || counters.errors) ports.push_back(std::move(counters));
    }
    return ports;
}

}  // namespace rankscope::machine
