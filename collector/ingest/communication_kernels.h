// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "collector/store/vocabulary.h"

namespace rankscope::collector {

/// True when a kernel's name alone says that it moves data between devices: the last resort where no call proves it.
/// Mangled names are as good as readable ones. A matrix product that communicates inside is compute.
bool isCommunicationKernelName(std::string_view name) noexcept;

/// True for the kernels among them whose launch is a call of NCCL's (or RCCL's) API.
bool isNcclKernelName(std::string_view name) noexcept;

/// The operation an NCCL or RCCL kernel's name tells: unknown for "SendRecv" (send, recv or all-to-all), "Generic" and
/// kernels of other libraries. Says nothing about algorithm and protocol: the name is that of the kernel chosen to run
/// any of them.
store::Op opFromKernelName(std::string_view name) noexcept;

}  // namespace rankscope::collector
