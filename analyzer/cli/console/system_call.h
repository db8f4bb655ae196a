// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace rankscope::cli {

// Passes the result of a system call through; a failure becomes an exception that names the call and its object.
template <typename Result>
Result checked(Result result, const char* call, const std::string& object = {}) {
    if (result == Result(-1))
        throw std::system_error(errno, std::generic_category(),
                                object.empty() ? call : std::string(call) + " " + object);
    return result;
}

}  // namespace rankscope::cli
