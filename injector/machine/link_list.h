// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "injector/capture_format/records.h"

namespace rankscope::machine {

/// One link, or all alike of one device.
struct Link {
    capture::LinkKind kind = capture::LinkKind::unknown;
    capture::LinkSource source = capture::LinkSource::unknown;
    int32_t device = -1;      ///< number the asker gave the device it belongs to; -1: the host's
    uint32_t count = 0;       ///< NVLinks that are up, PCIe lanes, 1 for a port
    uint32_t generation = 0;  ///< NVLink version or PCIe generation; 0 unknown
    int64_t bytesPerS = 0;    ///< one direction, all `count` together; 0 unknown
    char name[64] = {};
};

/// Where a device is on the bus, as NVML and CUDA name it.
struct DevicePlace {
    int32_t device = -1;  ///< number the asker gave it
    char busId[32] = {};
};

/// What was found, without the heap. A machine with more has the rest left out: 16 devices with two kinds each and 224
/// ports are more than any has.
class LinkList {
  public:
    static constexpr size_t kMost = 256;
    static constexpr size_t kMostDevices = 64;

    void add(const Link& link) noexcept {
        if (m_count < kMost) m_links[m_count++] = link;
    }
    void addPlace(const DevicePlace& place) noexcept {
        if (m_placeCount < kMostDevices) m_places[m_placeCount++] = place;
    }
    const DevicePlace* places() const noexcept { return m_places; }
    size_t placeCount() const noexcept { return m_placeCount; }
    const Link* begin() const noexcept { return m_links; }
    const Link* end() const noexcept { return m_links + m_count; }
    size_t size() const noexcept { return m_count; }

  private:
    size_t m_count = 0;
    size_t m_placeCount = 0;
    Link m_links[kMost];
    DevicePlace m_places[kMostDevices];
};

}  // namespace rankscope::machine
