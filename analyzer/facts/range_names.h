// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace rankscope::facts {

/// True when a range of this name waits for or fetches the next batch. PyTorch's `enumerate(DataLoader)#…`, `data`,
/// `next_batch`, `load_input`, `Data loading` do; `DistributedDataParallel.forward`, `BatchNorm` or `input_grad` do
/// not.
bool namesDataLoading(std::string_view name);

}  // namespace rankscope::facts
