// SPDX-License-Identifier: Apache-2.0
// CUPTI's callback side: the one subscriber, and what it asked to be told.
#pragma once

#include "reference/vgpu/engine/public_api.h"

namespace rankscope::vgpu {

bool callbackWanted(CUpti_CallbackDomain domain, CUpti_CallbackId id);
void notifySubscriber(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);

}  // namespace rankscope::vgpu
