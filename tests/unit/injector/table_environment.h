// SPDX-License-Identifier: Apache-2.0
// An environment that is a table, for what reads the process's own through a function.
#pragma once

#include <map>
#include <string>

namespace rankscope::injector::test {

inline std::map<std::string, std::string> g_environment;

/// What getenv() would answer if `g_environment` were the environment.
inline const char* fromTable(const char* name) {
    const auto found = g_environment.find(name);
    return found == g_environment.end() ? nullptr : found->second.c_str();
}

}  // namespace rankscope::injector::test
