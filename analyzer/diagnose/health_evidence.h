// SPDX-License-Identifier: Apache-2.0
// What NVML and sysfs told of devices and ports while the analysed steps ran, as evidence of findings that other
// evidence has made. A device that did as its peers did is none.
#pragma once

#include "analyzer/job/analysis.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

/// Devices that ran at lower clocks than those of the other ranks, and why NVML says they did; their uncorrected memory
/// errors and critical errors (Xid). Of the finding's ranks.
void addDeviceEvidence(const job::Analysis& analysis, job::Finding& finding);

/// Errors that NVLinks of the finding's ranks counted, and with `betweenNodes` the ports of their hosts.
void addLinkEvidence(const job::Analysis& analysis, bool betweenNodes, job::Finding& finding);

}  // namespace rankscope::diagnose
