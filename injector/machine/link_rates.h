// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rankscope::machine {

// Bytes per second and direction that a link carries, the line's own encoding taken off; 0: the text or number tells
// none. No link is faster than 10 Tbit/s.

/// `rate` of an adapter's port in sysfs, "400 Gb/sec (4X NDR)" (drivers/infiniband/core/sysfs.c). On InfiniBand SDR,
/// DDR, QDR and FDR tell the line's rate, all others what is left of it after encoding; over Ethernet (RoCE) all do, in
/// the same words.
int64_t portBytesPerS(const char* rate, bool isInfiniband) noexcept;

/// `speed` of a network interface in sysfs: Mbit/s, -1 unknown.
int64_t ethernetBytesPerS(const char* speed) noexcept;

/// One NVLink by the MB/s that NVML tells for it.
int64_t nvlinkBytesPerS(uint32_t megabytesPerS) noexcept;

/// `lanes` of PCI Express of a generation (PCI Express Base Specification: 2.5, 5, 8, 16, 32, 64 GT/s).
int64_t pcieBytesPerS(uint32_t generation, uint32_t lanes) noexcept;

}  // namespace rankscope::machine
