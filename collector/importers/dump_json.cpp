// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/dump_json.h"

#include <simdjson.h>

#include <cstring>
#include <vector>

#include "collector/importers/json_scan.h"

namespace rankscope::collector {

namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

/// Copies texts behind each other, so that the tree does not depend on the parser.
class Copier {
  public:
    Copier(DumpTree& tree, std::string& text) : m_tree(tree), m_text(text) {}

    /// simdjson bounds the depth (its default is 1024).
    DumpNode copy(element value) {
        switch (value.type()) {
            case element_type::ARRAY: {
                const DumpNode list = m_tree.addList();
                for (const element item : simdjson::dom::array(value)) m_tree.append(list, copy(item));
                return list;
            }
            case element_type::OBJECT: {
                const DumpNode dictionary = m_tree.addDictionary();
                for (const auto& [key, item] : simdjson::dom::object(value)) {
                    const DumpNode pair[] = {copyText(key), copy(item)};
                    m_tree.append(dictionary, pair);
                }
                return dictionary;
            }
            case element_type::STRING:
                return copyText(value.get_string().value_unsafe());
            case element_type::INT64:
                return m_tree.addInteger(value.get_int64().value_unsafe());
            case element_type::UINT64:
                return m_tree.addInteger(static_cast<int64_t>(value.get_uint64().value_unsafe()));
            case element_type::DOUBLE:
                return m_tree.addReal(value.get_double().value_unsafe());
            case element_type::BOOL:
                return m_tree.addBoolean(value.get_bool().value_unsafe());
            default:
                return m_tree.addNull();
        }
    }

  private:
    // Texts were reserved for: no view is moved by the next one.
    DumpNode copyText(std::string_view text) {
        const size_t at = m_text.size();
        m_text.append(text);
        return m_tree.addText(std::string_view(m_text).substr(at, text.size()));
    }

    DumpTree& m_tree;
    std::string& m_text;
};

/// The document up to the last bracket that closes something, with the brackets that are still open there closed.
/// Empty when nothing was ever closed.
std::string closed(std::string_view json) {
    std::string open, openAtSafe;
    size_t safe = 0;
    bool inText = false;
    for (size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        if (inText) {
            if (c == '\\') {
                ++i;
            } else if (c == '"') {
                inText = false;
            }
            continue;
        }
        if (c == '"') inText = true;
        if (c == '{' || c == '[') open += c == '{' ? '}' : ']';
        if (open.size() > simdjson::DEFAULT_MAX_DEPTH) return {};
        if ((c == '}' || c == ']') && !open.empty()) {
            open.pop_back();
            safe = i + 1;
            openAtSafe = open;
        }
    }
    if (safe == 0) return {};
    return std::string(json.substr(0, safe)) + std::string(openAtSafe.rbegin(), openAtSafe.rend());
}

}  // namespace

DumpJson readDumpJson(std::string_view json, DumpTree& tree) {
    DumpJson result;
    size_t firstInvalid = 0, invalid = 0;
    const std::string clean = sanitiseUtf8(withoutLeadingSpace(json), firstInvalid, invalid);
    simdjson::dom::parser parser;
    element root;
    auto error = parser.parse(clean).get(root);
    if (error != simdjson::SUCCESS) {
        const std::string repaired = closed(clean);
        result.cut = true;
        result.problem = simdjson::error_message(error);
        if (repaired.empty() || parser.parse(repaired).get(root) != simdjson::SUCCESS) return result;
    }
    result.text.reserve(clean.size() + 16);
    result.root = Copier(tree, result.text).copy(root);
    if (tree.isFull()) {
        result.root = DumpTree::kNone;
        result.problem = "it holds more values than a dump does";
    }
    return result;
}

}  // namespace rankscope::collector
