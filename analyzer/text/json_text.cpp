// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/json_text.h"

#include <cmath>

namespace rankscope::text {

int64_t whole(double value) {
    return std::llround(value);
}

Json wholeOrNull(const std::optional<double>& value) {
    return value ? Json(whole(*value)) : Json(nullptr);
}

std::string jsonText(const Json& json, int indent) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string jsonLine(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rankscope::text
