// SPDX-License-Identifier: Apache-2.0
#include "injector/machine/device_links.h"

#include "injector/machine/link_rates.h"
#include "injector/text.h"

namespace rankscope::machine {
namespace {

constexpr uint32_t kMostDevices = 64;

Link deviceLink(capture::LinkKind kind, int32_t number, const char* name) noexcept {
    Link link;
    link.kind = kind;
    link.source = capture::LinkSource::nvml;
    link.device = number;
    injector::copyText(link.name, name);
    return link;
}

/// MB/s of one field; 0 unknown.
uint32_t speedOf(const Nvml& nvml, NvmlDevice device, uint32_t fieldId, uint32_t scopeId) noexcept {
    NvmlFieldValue field{};
    field.fieldId = fieldId;
    field.scopeId = scopeId;
    if (nvml.fieldValues == nullptr || nvml.fieldValues(device, 1, &field) != kNvmlSuccess) return 0;
    return field.status == kNvmlSuccess && field.valueType == kNvmlUnsignedInt ? field.value.unsignedInt : 0;
}

/// nvmlNvlinkVersion_t counts 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0 from 1. Drivers have told 7 for the links of Hopper,
/// which are of version 4 and half as fast.
uint32_t generationOf(uint32_t version, int64_t bytesPerS) noexcept {
    constexpr uint32_t kMajor[] = {0, 1, 2, 2, 3, 3, 4, 5};
    constexpr int64_t kSlowestOfVersion5 = 40'000'000'000;
    if (version >= sizeof kMajor / sizeof kMajor[0]) return 0;
    return kMajor[version] == 5 && bytesPerS > 0 && bytesPerS < kSlowestOfVersion5 ? 4 : kMajor[version];
}

void addNvlinks(const Nvml& nvml, NvmlDevice device, int32_t number, LinkList& links) noexcept {
    if (nvml.linkState == nullptr) return;
    Link link = deviceLink(capture::LinkKind::nvlink, number, "NVLink");
    uint32_t firstActive = 0;
    for (uint32_t i = 0; i < kNvmlMostLinks; ++i) {
        uint32_t state = 0;
        if (nvml.linkState(device, i, &state) != kNvmlSuccess) {
            if (i == 0) return;  // not a device with NVLinks
            continue;            // this one is not there, or disabled
        }
        if (state != 1) continue;
        if (link.count++ == 0) firstActive = i;
    }
    if (link.count == 0) return;
    uint32_t speed = speedOf(nvml, device, kNvmlFieldCommonSpeed, 0);
    if (speed == 0) speed = speedOf(nvml, device, kNvmlFieldLinkSpeed, firstActive);
    const int64_t each = nvlinkBytesPerS(speed);
    link.bytesPerS = each * link.count;
    uint32_t version = 0;
    if (nvml.linkVersion != nullptr && nvml.linkVersion(device, firstActive, &version) == kNvmlSuccess)
        link.generation = generationOf(version, each);
    links.add(link);
}

void addPcie(const Nvml& nvml, NvmlDevice device, int32_t number, LinkList& links) noexcept {
    Link link = deviceLink(capture::LinkKind::pcie, number, "PCIe");
    if (nvml.pcieWidth == nullptr || nvml.pcieWidth(device, &link.count) != kNvmlSuccess || link.count == 0) return;
    // An idle link runs at a lower generation than it will under load; the highest is what device and slot agree on.
    // The width stays.
    if (nvml.pcieMaxGeneration == nullptr || nvml.pcieMaxGeneration(device, &link.generation) != kNvmlSuccess)
        if (nvml.pcieGeneration == nullptr || nvml.pcieGeneration(device, &link.generation) != kNvmlSuccess)
            link.generation = 0;
    link.bytesPerS = pcieBytesPerS(link.generation, link.count);
    links.add(link);
}

}  // namespace

void addDeviceLinks(const Nvml& nvml, NvmlDevice device, int32_t number, LinkList& links) noexcept {
    addNvlinks(nvml, device, number, links);
    addPcie(nvml, device, number, links);
}

void addLinksOfAllDevices(const Nvml& nvml, LinkList& links) noexcept {
    if (nvml.init == nullptr || nvml.init() != kNvmlSuccess) return;
    uint32_t count = 0;
    if (nvml.deviceCount != nullptr && nvml.deviceByIndex != nullptr && nvml.deviceCount(&count) == kNvmlSuccess) {
        for (uint32_t i = 0; i < count && i < kMostDevices; ++i) {
            NvmlDevice device = nullptr;
            if (nvml.deviceByIndex(i, &device) != kNvmlSuccess) continue;
            addDeviceLinks(nvml, device, static_cast<int32_t>(i), links);
            NvmlPciInfo pci{};
            if (nvml.pciInfo == nullptr || nvml.pciInfo(device, &pci) != kNvmlSuccess) continue;
            DevicePlace place{static_cast<int32_t>(i), {}};
            injector::copyText(place.busId, pci.busId);
            links.addPlace(place);
        }
    }
    nvml.shutdown();
}

}  // namespace rankscope::machine
