// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/machine/link_list.h"
#include "injector/machine/nvml.h"

namespace rankscope::machine {

/// Adds the NVLinks of a device that are up, in one row, and its PCIe link, numbered `number`. NVML has been begun.
/// What it does not tell is left out.
void addDeviceLinks(const Nvml& nvml, NvmlDevice device, int32_t number, LinkList& links) noexcept;

/// The same of all devices, in NVML's order, which is that of the bus, and their places on it. Begins and ends NVML.
void addLinksOfAllDevices(const Nvml& nvml, LinkList& links) noexcept;

}  // namespace rankscope::machine
