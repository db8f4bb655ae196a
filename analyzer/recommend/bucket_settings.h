// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analyzer/recommend/recommendation.h"

namespace rankscope::recommend {

/// Sets the buckets of gradients to messages of `mebibytes` MiB. DDP counts gradients as they are held, `heldBytes` an
/// element; DeepSpeed counts elements, which are `sentBytes` each on their way (DistributedDataParallel's
/// bucket_cap_mb, DeepSpeed's zero_optimization.reduce_bucket_size).
void setBuckets(int64_t mebibytes, int heldBytes, int sentBytes, Recommendation& recommendation);

}  // namespace rankscope::recommend
