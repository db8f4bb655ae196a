// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "gui/timeline/time_axis.h"

namespace rankscope::gui {

// Times of a damaged file may be anything. On their way in they are cut to where sums and differences of them do not
// overflow (292 years become 36).
inline constexpr int64_t kFarthestNs = INT64_MAX / 8;

/// From `beginNs` to `endNs`, but not before.
inline TimeRange soundRange(int64_t beginNs, int64_t endNs) noexcept {
    const int64_t begin = std::clamp(beginNs, -kFarthestNs, kFarthestNs);
    return {begin, std::clamp(endNs, begin, kFarthestNs)};
}

/// As above, of something that begins and lasts.
inline TimeRange soundStretch(int64_t startNs, int64_t durNs) noexcept {
    const int64_t begin = std::clamp(startNs, -kFarthestNs, kFarthestNs);
    return soundRange(begin, begin + std::clamp<int64_t>(durNs, 0, kFarthestNs));
}

}  // namespace rankscope::gui
