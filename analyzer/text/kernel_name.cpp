// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/kernel_name.h"

#include "collector/store/symbol_name.h"

namespace rankscope::text {

std::string readableKernelName(std::string_view name, size_t longest) {
    std::string text(name);
    if (std::optional<std::string> plain = store::demangled(name)) {
        text = plain->substr(0, store::parametersOf(*plain));
        if (text.starts_with("void ")) text.erase(0, 5);  // templates carry their return type
    }
    if (text.size() > longest) text = text.substr(0, longest - 3) + "...";
    return text;
}

}  // namespace rankscope::text
