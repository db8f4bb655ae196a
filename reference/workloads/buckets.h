// SPDX-License-Identifier: Apache-2.0
// How DistributedDataParallel cuts gradients into buckets: whole tensors, in the order in which backward finishes them,
// a bucket closing once it reaches its limit; the first limit is small so that communication starts early
// (torch/csrc/distributed/c10d/reducer.cpp).
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope::reference {

/// A range of elements of the flat gradient; ranges follow each other without gaps.
struct Bucket {
    int64_t begin = 0;
    int64_t end = 0;
};

inline constexpr int64_t kFirstBucketBytes = 1 << 20;

/// Tensors (numbers of elements) in the order in which backward finishes them.
std::vector<Bucket> planBuckets(const std::vector<int64_t>& tensors, int64_t elementBytes, int64_t limitBytes);

/// Everything in one bucket.
std::vector<Bucket> planSingleBucket(const std::vector<int64_t>& tensors);

/// Messages of exactly `bytes` each but for the last, as a model of many small tensors would send.
std::vector<Bucket> planEqualBuckets(const std::vector<int64_t>& tensors, int64_t elementBytes, int64_t bytes);

}  // namespace rankscope::reference
