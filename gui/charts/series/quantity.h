// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rankscope::gui {

/// What the numbers of an axis are. nsPerByte is shown as s/GB (the same number) or ms/GB, bytesPerNs as GB/s (the same
/// number).
enum class Quantity : uint8_t { bytes, bytesPerNs, nanoseconds, share, nsPerByte, count };

/// Three significant digits with a unit: "16.8 MiB", "120 GB/s", "12 %".
std::string quantityText(Quantity quantity, double value);

/// Round values in [low, high] for the lines of an axis: 1, 2 or 5 times a power of ten on a linear one; on a
/// logarithmic one powers of ten, with 2 and 5 where these are fewer than three. At most `most` (logarithmic axes:
/// about that).
std::vector<double> axisTicks(double low, double high, bool logarithmic, size_t most);
/// The same for a quantity: of bytes the values are round in KiB, MiB….
std::vector<double> quantityTicks(Quantity quantity, double low, double high, bool logarithmic, size_t most);

}  // namespace rankscope::gui
