// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace rankscope::cli {

// A library opened at run time, to be asked for its version. Stays loaded until the end of the process: CUDA's
// libraries do not like to be closed.
class SharedLibrary {
  public:
    // Tries the names in order, first as the loader finds them, then in the folders.
    static SharedLibrary openFirst(const std::vector<std::string>& names, const std::vector<std::string>& folders);

    bool isOpen() const { return m_handle != nullptr; }
    const std::string& path() const { return m_path; }

    template <typename Function>
    Function* find(const char* symbol) const {
        return reinterpret_cast<Function*>(address(symbol));
    }

  private:
    void* address(const char* symbol) const;

    void* m_handle = nullptr;
    std::string m_path;
};

}  // namespace rankscope::cli
