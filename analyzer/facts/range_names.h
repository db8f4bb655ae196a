// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace rankscope::facts {

/// Does a range of this name wait for or fetch the next batch? PyTorch's `enumerate(DataLoader)#…`, `data`,
/// `next_batch`, `load_input`, `Data loading` do; `DistributedDataParallel.forward`, `BatchNorm` or `input_grad` do
/// not.
bool namesDataLoading(std::string_view name);

}  // namespace rankscope::facts
