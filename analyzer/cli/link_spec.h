// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace rankscope::cli {

// What is wrong with link peaks such as "intra:gbps=200,alpha_us=6;inter:gbps=40"; empty when they can be used.
std::string checkLinks(const std::string& text);

}  // namespace rankscope::cli
