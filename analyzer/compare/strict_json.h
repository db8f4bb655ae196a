// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rankscope::compare {

/// JSON in which no object has a key twice: of two values, which a merge can leave behind, neither is taken. Throws
/// SummaryError with `origin`, the place in it and what to do.
nlohmann::json parseStrictJson(const std::string& text, const std::string& origin);

}  // namespace rankscope::compare
