// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/bucket_settings.h"

#include <string>

namespace rankscope::recommend {

void setBuckets(int64_t mebibytes, int heldBytes, int sentBytes, Recommendation& recommendation) {
    recommendation.settings.ddp["bucket_cap_mb"] = std::to_string(mebibytes * heldBytes / sentBytes);
    recommendation.settings.deepspeed["zero_optimization.reduce_bucket_size"] =
        std::to_string((mebibytes << 20) / sentBytes);
}

}  // namespace rankscope::recommend
