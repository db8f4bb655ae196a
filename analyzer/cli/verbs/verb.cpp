// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/verbs/verb.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace rankscope::cli {

void setAction(CLI::App& verb, Invocation& invocation, std::function<int()> action) {
    verb.callback([&invocation, action = std::move(action)] { invocation.action = action; });
}

}  // namespace rankscope::cli
