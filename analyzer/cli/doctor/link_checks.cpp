// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>
#include <tuple>

#include "analyzer/cli/doctor/machine_check.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"
#include "injector/machine/device_links.h"
#include "injector/machine/host_ports.h"

namespace rankscope::cli {
namespace {

using capture::LinkKind;
using machine::Link;

std::string peakText(const Link& link, const char* of) {
    return link.bytesPerS > 0 ? fmt::format("{}{}", text::bandwidthText(static_cast<double>(link.bytesPerS)), of)
                              : "speed unknown";
}

std::string deviceLinkText(const Link& link) {
    std::string text;
    if (link.kind == LinkKind::nvlink)
        text = text::countedText(link.count, "NVLink") +
               (link.generation ? fmt::format(" of version {}", link.generation) : "");
    else
        text = fmt::format("PCIe{} x{}", link.generation ? fmt::format(" {}.0", link.generation) : "", link.count);
    return text + ", " + peakText(link, link.kind == LinkKind::nvlink && link.count > 1 ? " together" : "");
}

bool isVirtualRun() {
    const char* clock = std::getenv("RANKSCOPE_CLOCK");
    return clock && std::string_view(clock) == "cupti";
}

}  // namespace

MachineCheck checkGpuLinks() {
    MachineCheck check{"GPU links", false, {}, "peaks between GPUs of this machine are not read from it"};
    machine::Nvml nvml;
    if (!machine::loadNvml(nvml)) {
        check.found = "unknown: libnvidia-ml.so.1 cannot be loaded (in a container: the driver capability 'utility')";
        return check;
    }
    machine::LinkList links;
    machine::addLinksOfAllDevices(nvml, links);
    std::map<int32_t, std::string> byDevice;
    for (const Link& link : links)
        byDevice[link.device] += (byDevice.contains(link.device) ? "; " : "") + deviceLinkText(link);
    std::map<std::string, std::vector<int32_t>> alike;
    for (const auto& [device, text] : byDevice) alike[text].push_back(device);
    for (const auto& [text, devices] : alike)
        check.found += fmt::format("{}{}: {}", check.found.empty() ? "" : "; ", text::rangesText(devices), text);
    check.ok = std::any_of(links.begin(), links.end(), [](const Link& link) { return link.bytesPerS > 0; });
    if (check.ok) check.cost.clear();
    if (check.found.empty()) check.found = "unknown: NVML tells of no device";
    return check;
}

MachineCheck checkNetworkLinks() {
    MachineCheck check{"network links", false, {}, "peaks between machines are not read from this one"};
    machine::LinkList links;
    if (const char* sysfs = machine::sysfsRoot(isVirtualRun())) machine::addHostPorts(sysfs, links);
    std::map<std::tuple<LinkKind, int64_t>, std::vector<std::string>> alike;
    for (const Link& link : links) alike[{link.kind, -link.bytesPerS}].push_back(link.name);
    for (auto& [key, names] : alike) {
        std::sort(names.begin(), names.end());
        Link link;
        link.bytesPerS = -std::get<1>(key);
        check.found += fmt::format("{}{}: {}, {}", check.found.empty() ? "" : "; ", fmt::join(names, ", "),
                                   std::get<0>(key) == LinkKind::infiniband ? "InfiniBand" : "Ethernet",
                                   peakText(link, names.size() > 1 ? " each" : ""));
    }
    check.ok = std::any_of(links.begin(), links.end(), [](const Link& link) { return link.bytesPerS > 0; });
    if (check.ok) check.cost.clear();
    if (check.found.empty())
        check.found =
            "unknown: no adapter that is up in /sys/class/infiniband or /sys/class/net (a virtual machine or container "
            "may hide them)";
    return check;
}

}  // namespace rankscope::cli
