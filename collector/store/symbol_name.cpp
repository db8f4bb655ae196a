// SPDX-License-Identifier: Apache-2.0
#include "collector/store/symbol_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace rankscope::store {
namespace {

constexpr size_t kLongestMangled = 8192;  // a hostile name must not cost more than reading it

}  // namespace

std::optional<std::string> demangled(std::string_view name) {
    if (!name.starts_with("_Z") || name.size() > kLongestMangled) return std::nullopt;
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> plain(
        abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 && plain != nullptr ? std::optional<std::string>(plain.get()) : std::nullopt;
}

size_t parametersOf(std::string_view demangled) {
    constexpr std::string_view kAnonymous = "(anonymous namespace)";
    int depth = 0;
    for (size_t i = 0; i < demangled.size(); ++i) {
        if (demangled[i] == '<') ++depth;
        if (demangled[i] == '>') --depth;
        if (demangled[i] != '(' || depth > 0) continue;
        if (!demangled.substr(i).starts_with(kAnonymous)) return i;
        i += kAnonymous.size() - 1;
    }
    return demangled.size();
}

std::string_view functionOf(std::string_view demangled) {
    std::string_view name = demangled.substr(0, parametersOf(demangled));
    size_t begin = 0, end = name.size();
    int depth = 0;
    for (size_t i = 0; i < name.size(); ++i) {
        if (name[i] == '<' && depth++ == 0) end = i;
        if (name[i] == '>') --depth;
        // Behind a return type or a namespace the function's name begins anew.
        if (depth == 0 && (name[i] == ' ' || name[i] == ':')) {
            begin = i + 1;
            end = name.size();
        }
    }
    return begin < end ? name.substr(begin, end - begin) : name;
}

}  // namespace rankscope::store
