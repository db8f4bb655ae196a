// SPDX-License-Identifier: Apache-2.0
#include "gui/session/short_name.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace rankscope::gui {
namespace {

constexpr const char* kLeftOut = "\u2026";
constexpr size_t kTellingBase =
    14;  // shorter ones ("Kernel2", "elementwise") say little without their template arguments
constexpr size_t kLongestParsed = 8192;  // a hostile name must not cost more than reading it

bool isWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

// "(anonymous namespace)::" and "name::" before a name; what is qualified by a template or a function keeps its
// qualifier.
std::string withoutNamespaces(std::string_view text) {
    std::string result;
    size_t word = 0;  // where the identifier at the end of `result` begins
    for (size_t i = 0; i < text.size();) {
        constexpr std::string_view kAnonymous = "(anonymous namespace)::";
        if (text.substr(i, kAnonymous.size()) == kAnonymous) {
            i += kAnonymous.size();
            continue;
        }
        if (text.substr(i, 2) == "::" && word < result.size()) {
            result.resize(word);
            i += 2;
            continue;
        }
        result += text[i];
        if (!isWord(text[i])) word = result.size();
        ++i;
    }
    return result;
}

// A name taken apart; texts point into it.
struct Parts {
    std::string_view scope, base;             // scope without the last "::"
    std::vector<std::string_view> arguments;  // of its template
};

// Nothing where brackets do not match, so that "a > b" stays what it is.
std::optional<Parts> partsOf(std::string_view name) {
    if (name.size() > kLongestParsed) return {};
    if (name.starts_with("void ")) name.remove_prefix(5);
    name = trimmed(name);
    std::string open;
    size_t begin = 0, last = 0, templateAt = std::string_view::npos, templateEnd = 0, end = name.size();
    std::vector<size_t> commas;
    for (size_t i = 0; i < name.size(); ++i) {
        const char c = name[i];
        if (c == '(' && open.empty() && i > last && (isWord(name[i - 1]) || name[i - 1] == '>') &&
            name.ends_with(')')) {
            end = i;  // the parameters
            break;
        }
        if (c == '<' && open.empty()) {
            templateAt = i;
            commas.clear();
        }
        if (c == '<' || c == '(' || c == '{' || c == '[') open += c;
        if (c == '>' || c == ')' || c == '}' || c == ']') {
            const char matching = c == '>' ? '<' : c == ')' ? '(' : c == '}' ? '{' : '[';
            if (open.empty() || open.back() != matching) return {};
            open.pop_back();
            if (c == '>' && open.empty()) templateEnd = i;
        }
        if (c == ',' && open == "<") commas.push_back(i);
        if (open.empty() && c == ' ') begin = last = i + 1;  // before it: the return type
        if (open.empty() && name.substr(i, 2) == "::") last = ++i + 1;
    }
    if (!open.empty()) return {};
    Parts parts;
    const bool isTemplate = templateAt != std::string_view::npos && templateAt >= last && templateEnd + 1 == end;
    parts.base = name.substr(last, (isTemplate ? templateAt : end) - last);
    if (parts.base.empty() || !std::all_of(parts.base.begin(), parts.base.end(), isWord)) return {};
    if (begin > 0 && !isTemplate && last == begin && end == name.size()) return {};  // words, not a function
    if (last > begin + 2) parts.scope = name.substr(begin, last - 2 - begin);
    if (isTemplate) {
        size_t from = templateAt + 1;
        commas.push_back(templateEnd);
        for (const size_t comma : commas) {
            parts.arguments.push_back(trimmed(name.substr(from, comma - from)));
            from = comma + 1;
        }
    }
    return parts;
}

// "FillFunctor" of "at::native::FillFunctor<float>".
std::string headOf(std::string_view argument) {
    const std::string plain = withoutNamespaces(argument);
    const size_t inner = plain.find_first_of("<({");
    return inner == std::string::npos || inner == 0 ? plain : plain.substr(0, inner);
}

std::string joined(std::string_view base, const std::vector<std::string>& arguments) {
    std::string text(base);
    for (size_t i = 0; i < arguments.size(); ++i) text += (i == 0 ? "<" : ", ") + arguments[i];
    return arguments.empty() ? text : text + ">";
}

std::string shortOf(const Parts& parts) {
    if (parts.base.size() >= kTellingBase) return std::string(parts.base);
    std::vector<std::string> heads;
    for (const std::string_view argument : parts.arguments) heads.push_back(headOf(argument));
    return joined(parts.base, heads);
}

// Of names with the same base, what an argument is shown as: left out where all have the same, without its own
// arguments where that is enough.
std::vector<std::string> apart(const std::vector<const Parts*>& alike) {
    const size_t arguments = alike.front()->arguments.size();
    const bool sameCount = std::all_of(alike.begin(), alike.end(),
                                       [&](const Parts* parts) { return parts->arguments.size() == arguments; });
    std::vector<std::set<std::string_view>> values(arguments);
    std::vector<std::set<std::string>> heads(arguments);
    for (const Parts* parts : alike)
        for (size_t i = 0; sameCount && i < arguments; ++i) {
            values[i].insert(parts->arguments[i]);
            heads[i].insert(headOf(parts->arguments[i]));
        }
    std::vector<std::string> texts;
    for (const Parts* parts : alike) {
        std::vector<std::string> shown;
        for (size_t i = 0; i < parts->arguments.size(); ++i) {
            if (!sameCount || heads[i].size() < values[i].size())
                shown.push_back(withoutNamespaces(parts->arguments[i]));
            else if (values[i].size() > 1)
                shown.push_back(headOf(parts->arguments[i]));
            else if (shown.empty() || shown.back() != kLeftOut)
                shown.emplace_back(kLeftOut);
        }
        if (shown.size() > 1 && shown.back() == kLeftOut) shown.pop_back();
        texts.push_back(joined(parts->base, shown));
    }
    return texts;
}

using Groups = std::map<std::string, std::vector<size_t>>;

// Names that look alike although they differ.
Groups lookingAlike(std::span<const std::string> names, const std::vector<std::string>& shown) {
    Groups groups;
    for (size_t i = 0; i < shown.size(); ++i) groups[shown[i]].push_back(i);
    std::erase_if(groups, [&](const auto& group) {
        return std::all_of(group.second.begin(), group.second.end(),
                           [&](size_t i) { return names[i] == names[group.second.front()]; });
    });
    return groups;
}

}  // namespace

std::vector<std::string> shortNames(std::span<const std::string> names) {
    std::vector<std::optional<Parts>> parts;
    std::vector<std::string> shown;
    for (const std::string& name : names) {
        parts.push_back(partsOf(name));
        shown.push_back(parts.back() ? shortOf(*parts.back()) : name);
    }
    for (const auto& [text, group] : lookingAlike(names, shown)) {
        std::vector<const Parts*> alike;
        for (const size_t i : group)
            if (parts[i]) alike.push_back(&*parts[i]);
        if (alike.size() < group.size()) continue;
        const std::vector<std::string> texts = apart(alike);
        for (size_t i = 0; i < group.size(); ++i) shown[group[i]] = texts[i];
    }
    // Names that differ in their namespaces or parameters only.
    for (const auto& [text, group] : lookingAlike(names, shown))
        for (const size_t i : group) shown[i] = names[i];
    return shown;
}

}  // namespace rankscope::gui
