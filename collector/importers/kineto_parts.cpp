// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/kineto_parts.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace rankscope::collector {

namespace {

/// A label is short: more is a name that happens to begin with a bracket.
constexpr size_t kLongestLabel = 64;
/// Share of a device's kernels that its process launched, at least: the others were launched before the recording
/// began. Processes number their calls alike, so that another one seems to have launched many of them, too, but for
/// those that ran before.
constexpr double kLaunched = 0.5;

bool isDigitOfLabel(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// The only number in a label, "R0", "rank 3"; empty where there are several ("TP00-DP01").
std::optional<int64_t> onlyNumber(std::string_view label) {
    std::optional<int64_t> only;
    for (size_t at = 0; at < label.size();) {
        if (!isDigitOfLabel(label[at])) {
            ++at;
            continue;
        }
        int64_t value = 0;
        const char* const end = std::from_chars(label.data() + at, label.data() + label.size(), value).ptr;
        if (only) return std::nullopt;
        only = value;
        at = static_cast<size_t>(end - label.data());
    }
    return only;
}

bool isOnDevice(KinetoCategory category) {
    switch (category) {
        case KinetoCategory::kernel:
        case KinetoCategory::memcpy:
        case KinetoCategory::memset:
        case KinetoCategory::synchronization:
        case KinetoCategory::gpuAnnotation:
        case KinetoCategory::unknownGpu:
            return true;
        default:
            return false;
    }
}

/// Processes that launched as much of a device as any did, within 2 %: kernels that others launched before the
/// recording began fit anybody.
std::vector<int64_t> likelyLaunchers(const std::map<int64_t, double>& shares) {
    double best = kLaunched;
    for (const auto& [process, share] : shares) best = std::max(best, share);
    std::vector<int64_t> likely;
    for (const auto& [process, share] : shares)
        if (share >= best - 0.02) likely.push_back(process);
    return likely;
}

std::optional<int64_t> deviceOf(const KinetoEvent& event) {
    return event.device ? event.device : event.pid;
}

}  // namespace

std::string_view mergeLabel(std::string_view text) {
    std::string_view label;
    if (text.starts_with('[')) {
        const size_t end = text.find(']');
        if (end == std::string_view::npos) return {};
        label = text.substr(1, end - 1);
    } else {
        constexpr std::string_view kWord = "rank";
        for (size_t i = 0; i < kWord.size(); ++i)
            if (i >= text.size() || std::tolower(static_cast<unsigned char>(text[i])) != kWord[i]) return {};
        size_t end = kWord.size();
        if (end < text.size() && (text[end] == ' ' || text[end] == '_' || text[end] == '-')) ++end;
        const size_t digits = end;
        while (end < text.size() && isDigitOfLabel(text[end])) ++end;
        if (end == digits) return {};
        label = text.substr(0, end);
    }
    return label.size() <= kLongestLabel && std::any_of(label.begin(), label.end(), isDigitOfLabel)
               ? label
               : std::string_view();
}

void KinetoParts::see(const KinetoEvent& event) {
    if (!event.label.empty() && m_labels.find(event.label) == m_labels.end()) m_labels.emplace(event.label);
    switch (event.category) {
        case KinetoCategory::metadata: {
            const bool names = event.name == "process_name" || event.name == "process_labels";
            const std::string_view label = names ? mergeLabel(event.argsName) : std::string_view();
            if (label.empty() || !event.pid) return;
            m_labels.emplace(label);
            m_labelOfProcess.try_emplace(*event.pid, label);
            return;
        }
        case KinetoCategory::runtimeCall:
            if (event.pid) m_processes.insert(*event.pid);
            return;
        case KinetoCategory::kernel:
            if (const auto device = deviceOf(event)) m_devices.insert(*device);
            return;
        default:
            return;
    }
}

void KinetoParts::vote(const KinetoEvent& event) {
    if (m_labels.size() > 1) return;
    const bool isCall = event.category == KinetoCategory::runtimeCall || event.category == KinetoCategory::driverCall;
    if (isCall && event.pid && event.correlation) m_launches[*event.correlation].push_back({*event.pid, event.startNs});
    const auto device = deviceOf(event);
    if (event.category == KinetoCategory::kernel && device && event.correlation)
        m_kernels.push_back({*device, *event.correlation, event.startNs});
}

bool KinetoParts::split() {
    if (m_labels.size() > 1) {
        splitByLabels();
    } else {
        splitByProcesses();
    }
    return m_ranks.size() > 1;
}

void KinetoParts::splitByLabels() {
    std::vector<std::pair<std::optional<int64_t>, std::string>> parts;
    for (const std::string& label : m_labels) parts.emplace_back(onlyNumber(label), label);
    std::ranges::sort(parts);
    const auto twice = std::ranges::adjacent_find(parts, {}, &std::pair<std::optional<int64_t>, std::string>::first);
    for (const auto& [rank, label] : parts) {
        m_partOfLabel.emplace(label, m_ranks.size());
        m_ranks.push_back(twice == parts.end() ? rank : std::nullopt);
    }
}

/// Every process is of a device of which it can have launched all kernels, or most. Where several processes can, the
/// devices that leave no choice come first, and what is then still open goes in the order of processes.
void KinetoParts::splitByProcesses() {
    std::map<int64_t, double> kernelsOf;                         // by device
    std::map<int64_t, std::map<int64_t, double>> launchedShare;  // by device and process
    for (const Kernel& kernel : m_kernels) ++kernelsOf[kernel.device];
    for (const Kernel& kernel : m_kernels) {
        const auto launches = m_launches.find(kernel.correlation);
        if (launches == m_launches.end()) continue;
        for (const Launch& launch : launches->second)
            if (launch.startNs <= kernel.startNs)
                launchedShare[kernel.device][launch.process] += 1 / kernelsOf[kernel.device];
    }
    std::map<int64_t, int64_t> processOf;
    while (processOf.size() < m_devices.size()) {
        std::optional<int64_t> next;
        std::vector<int64_t> fewest;
        for (const int64_t device : m_devices) {
            if (processOf.contains(device)) continue;
            const std::vector<int64_t> able = likelyLaunchers(launchedShare[device]);
            if (!next || able.size() < fewest.size()) {
                next = device;
                fewest = able;
            }
        }
        if (fewest.empty()) return;
        processOf[*next] = fewest.front();
        for (auto& [device, shares] : launchedShare) shares.erase(fewest.front());
    }
    for (const auto& [device, process] : processOf) {
        m_partOfDevice[device] = m_ranks.size();
        m_partOfProcess[process] = m_ranks.size();
        m_ranks.emplace_back(std::nullopt);
    }
}

std::optional<size_t> KinetoParts::partOf(const KinetoEvent& event) const {
    const auto find = [](const auto& parts, const auto& key) -> std::optional<size_t> {
        const auto part = parts.find(key);
        return part == parts.end() ? std::nullopt : std::optional(part->second);
    };
    if (!m_partOfLabel.empty()) {
        if (!event.label.empty()) return find(m_partOfLabel, event.label);
        const auto named = event.pid ? m_labelOfProcess.find(*event.pid) : m_labelOfProcess.end();
        return named == m_labelOfProcess.end() ? std::nullopt : find(m_partOfLabel, named->second);
    }
    if (isOnDevice(event.category)) {
        const auto device = deviceOf(event);
        return device ? find(m_partOfDevice, *device) : std::nullopt;
    }
    return event.pid ? find(m_partOfProcess, *event.pid) : std::nullopt;
}

}  // namespace rankscope::collector
