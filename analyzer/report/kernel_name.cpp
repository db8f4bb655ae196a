// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/kernel_name.h"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace rankscope::analyzer {

namespace {

constexpr size_t kLongestMangled = 8192;  // a hostile name must not cost more than reading it

/// Without the parameter list: the '(' that stands outside of template arguments and is not '(anonymous namespace)'.
std::string_view withoutParameters(std::string_view name) {
    constexpr std::string_view kAnonymous = "(anonymous namespace)";
    int depth = 0;
    for (size_t i = 0; i < name.size(); ++i) {
        if (name[i] == '<') ++depth;
        if (name[i] == '>') --depth;
        if (name[i] != '(' || depth > 0) continue;
        if (name.substr(i, kAnonymous.size()) == kAnonymous) {
            i += kAnonymous.size() - 1;
            continue;
        }
        return name.substr(0, i);
    }
    return name;
}

}  // namespace

std::string readableKernelName(std::string_view name, size_t longest) {
    std::string text(name);
    if (name.starts_with("_Z") && name.size() <= kLongestMangled) {
        int status = 0;
        const std::unique_ptr<char, decltype(&std::free)> plain(abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), &std::free);
        if (status == 0 && plain != nullptr) text = withoutParameters(plain.get());
        if (text.starts_with("void ")) text.erase(0, 5);  // templates carry their return type
    }
    if (text.size() > longest) text = text.substr(0, longest - 3) + "...";
    return text;
}

}  // namespace rankscope::analyzer
