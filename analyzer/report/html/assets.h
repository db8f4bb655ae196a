// SPDX-License-Identifier: Apache-2.0
// The files of assets/ as text; the build makes assets.cpp of them.
#pragma once

#include <string_view>

namespace rankscope::report::html {

std::string_view reportStyle() noexcept;
std::string_view reportScript() noexcept;

}  // namespace rankscope::report::html
