// SPDX-License-Identifier: Apache-2.0
// JSON that others wrote. Copying and printing a value calls itself for each level of it, so that a text of a few
// megabytes of brackets would end the process: none is made of a text that is nested more deeply than ours ever are.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "collector/store/error.h"
#include "collector/store/input_text.h"

namespace rankscope::store {

/// Our own documents have up to ten levels.
inline constexpr int kDeepestJson = 64;

/// True for a text with more open brackets at one place than `deepest`.
inline bool isNestedDeeper(std::string_view json, int deepest = kDeepestJson) {
    int depth = 0;
    bool inString = false;
    for (size_t at = 0; at < json.size(); ++at) {
        const char c = json[at];
        if (inString) {
            if (c == '\\') ++at;
            if (c == '"') inString = false;
        } else if (c == '"') {
            inString = true;
        } else if (c == '[' || c == '{') {
            if (++depth > deepest) return true;
        } else if (c == ']' || c == '}') {
            --depth;
        }
    }
    return false;
}

/// Throws Error, which names `origin`, or nlohmann::json::exception.
inline nlohmann::json parseJson(std::string_view text, const std::string& origin,
                                const nlohmann::json::parser_callback_t& callback = nullptr) {
    if (isNestedDeeper(text)) throw Error(origin, "nested more deeply than any document that is read here", "");
    return nlohmann::json::parse(text, callback);
}

/// Like nlohmann::json::parse without exceptions: is_discarded() for what is no JSON, or nested too deeply.
inline nlohmann::json parseJsonOrNothing(std::string_view text) {
    if (isNestedDeeper(text)) return nlohmann::json(nlohmann::json::value_t::discarded);
    return nlohmann::json::parse(text, nullptr, false);
}

/// The same of a file; one that is missing or cannot be read is nothing, too.
inline nlohmann::json readJsonOrNothing(const std::filesystem::path& file) {
    try {
        return parseJsonOrNothing(readInputText(file));
    } catch (const Error&) {
        return nlohmann::json(nlohmann::json::value_t::discarded);
    }
}

}  // namespace rankscope::store
