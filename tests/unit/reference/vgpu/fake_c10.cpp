// SPDX-License-Identifier: Apache-2.0
// Stands for libc10.so: a converter of PyTorch's own, which says so by its answer.
#include <cstdint>
#include <functional>

namespace c10 {

class ApproximateClockToUnixTimeConverter {
  public:
    std::function<int64_t(uint64_t)> makeConverter();
};

std::function<int64_t(uint64_t)> ApproximateClockToUnixTimeConverter::makeConverter() {
    return [](uint64_t) { return int64_t{-10}; };
}

}  // namespace c10
