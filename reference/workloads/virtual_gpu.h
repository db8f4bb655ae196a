// SPDX-License-Identifier: Apache-2.0
// What a virtual GPU offers beyond CUDA, found by name at run time; on a real GPU each call does the nearest real
// thing.
#pragma once

#include <cstdint>

namespace rankscope::reference {

class VirtualGpu {
  public:
    VirtualGpu();

    bool present() const { return m_hostWork != nullptr; }
    /// The host is busy for `ns`: declared on a virtual clock, spun on a real one.
    void hostWork(int64_t ns) const;
    /// This process dies by `signal`; a virtual GPU delivers completed activity first.
    [[noreturn]] void die(int signal) const;

  private:
    void (*m_hostWork)(int64_t ns) = nullptr;
    void (*m_kill)(int signal) = nullptr;
};

}  // namespace rankscope::reference
