// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/machine/link_list.h"

namespace rankscope::machine {

/// Adds the host's ports that are up: InfiniBand and RoCE ports, then network interfaces that are hardware of their own
/// (no bridge, no bond, no second view of an InfiniBand port or of another function of the same card). `sysfs` is
/// "/sys", or a folder that looks like it. What is not there or makes no sense is left out. Allocates and reads files:
/// for a thread that may wait.
void addHostPorts(const char* sysfs, LinkList& links) noexcept;

/// What to hand to addHostPorts(): "/sys", or in a virtual run what RANKSCOPE_SYSFS_ROOT names. Null: a virtual run
/// whose hosts are not described.
const char* sysfsRoot(bool isVirtual) noexcept;

}  // namespace rankscope::machine
