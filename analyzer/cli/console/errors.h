// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace rankscope::cli {

// Exit codes of every verb but `run`, whose status is the job's own. Part of the command-line contract.
enum ExitCode : int {
    kExitOk = 0,
    kExitGateFailed = 1,
    kExitUsage = 2,
    kExitInput = 3,
    kExitInternal = 4,
    kExitRunFailed = 5,  // `analyze`: the report is there, and says what ended the job
};

constexpr int kExitCommandNotExecutable = 126;  // as a shell says it
constexpr int kExitCommandNotFound = 127;

// Ends a verb: what is wrong, and in `hint` what to do about it. Caught once, in main.
class VerbError : public std::runtime_error {
  public:
    VerbError(ExitCode code, const std::string& what, std::string hint = {})
        : std::runtime_error(what), m_code(code), m_hint(std::move(hint)) {}
    ExitCode code() const { return m_code; }
    const std::string& hint() const { return m_hint; }

  private:
    ExitCode m_code;
    std::string m_hint;
};

// Passes the result of a system call through; a failure becomes an exception that names the call and its object.
template <typename Result>
Result checked(Result result, const char* call, const std::string& object = {}) {
    if (result == Result(-1))
        throw std::system_error(errno, std::generic_category(),
                                object.empty() ? call : std::string(call) + " " + object);
    return result;
}

}  // namespace rankscope::cli
