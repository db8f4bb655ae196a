// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/importers/import_loss.h"

namespace rankscope::collector {

/// Says that the devices are of another vendor than NVIDIA: "AMD's, with HIP and RCCL".
inline void tellVendor(std::string_view devices, ImportLosses& losses) {
    losses.add("source_absent", "info", std::nullopt,
               "the devices are " + std::string(devices) +
                   ": what is told of times holds; fixes are told in the words of NVIDIA's tools and of NCCL");
}

}  // namespace rankscope::collector
