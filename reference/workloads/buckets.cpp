// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/buckets.h"

#include <algorithm>
#include <numeric>

namespace rankscope::reference {

std::vector<Bucket> planBuckets(const std::vector<int64_t>& tensors, int64_t elementBytes, int64_t limitBytes) {
    std::vector<Bucket> buckets;
    Bucket open;
    for (const int64_t elements : tensors) {
        open.end += elements;
        const int64_t limit = buckets.empty() ? std::min(kFirstBucketBytes, limitBytes) : limitBytes;
        if ((open.end - open.begin) * elementBytes < limit) continue;
        buckets.push_back(open);
        open.begin = open.end;
    }
    if (open.end > open.begin) buckets.push_back(open);
    return buckets;
}

std::vector<Bucket> planSingleBucket(const std::vector<int64_t>& tensors) {
    return {Bucket{0, std::accumulate(tensors.begin(), tensors.end(), int64_t{0})}};
}

std::vector<Bucket> planEqualBuckets(const std::vector<int64_t>& tensors, int64_t elementBytes, int64_t bytes) {
    const int64_t total = std::accumulate(tensors.begin(), tensors.end(), int64_t{0});
    const int64_t each = std::max<int64_t>(1, bytes / elementBytes);
    std::vector<Bucket> buckets;
    for (int64_t begin = 0; begin < total; begin += each) buckets.push_back({begin, std::min(begin + each, total)});
    return buckets;
}

}  // namespace rankscope::reference
