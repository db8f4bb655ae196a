// SPDX-License-Identifier: Apache-2.0
// NVTX's types without its implementation: we are called by NVTX and never call it.
#pragma once

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
