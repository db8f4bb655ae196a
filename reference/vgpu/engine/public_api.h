// SPDX-License-Identifier: Apache-2.0
// The public headers whose functions this library answers for.
#pragma once

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <nccl.h>
