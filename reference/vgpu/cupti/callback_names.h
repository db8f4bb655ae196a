// SPDX-License-Identifier: Apache-2.0
// The names of the calls that CUPTI numbers; the tables are made from its headers when this is built.
#pragma once

#include <cstdint>

namespace rankscope::vgpu {

struct CallbackName {
    uint32_t id;
    const char* name;
};

extern const CallbackName kRuntimeCallbackNames[], kDriverCallbackNames[];
extern const int kRuntimeCallbackNameCount, kDriverCallbackNameCount;

}  // namespace rankscope::vgpu
