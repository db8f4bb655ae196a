// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace rankscope::injector {

/// Finds the function a hook stands in front of: the next definition in the global scope; else the one the caller's own
/// dependencies give (a library loaded with RTLD_LOCAL); else that of any loaded library whose name starts with
/// `libraryPrefix`. Null: nowhere. `mayGo`: it is in a library that dlclose can unload.
void* findRealSymbol(const char* name, const char* libraryPrefix, void* self, void* caller,
                     bool* mayGo = nullptr) noexcept;

/// Finds a function in a library that is loaded already, or else opens `soname`. Null: not to be had.
void* findInLoaded(const char* libraryPrefix, const char* name) noexcept;

/// A looked-up address in a library that dlclose can unload. All of them hang in one list; our dlclose empties it.
struct ForgettableAddress {
    std::atomic<void*>* address = nullptr;
    std::atomic<ForgettableAddress*> next{nullptr};
    std::atomic<bool> listed{false};
};
void listForgettable(ForgettableAddress& entry) noexcept;
void forgetAddresses() noexcept;

/// The real function behind a hook, looked up once. All zero at first, without an address in it: a process that calls
/// none of the hooks has no page of them.
template <typename Function>
class RealSymbol {
  public:
    constexpr RealSymbol() = default;

    /// Null: not looked up yet, or forgotten since.
    Function known() const noexcept { return reinterpret_cast<Function>(m_function.load(std::memory_order_relaxed)); }

    /// As findRealSymbol().
    Function get(const char* name, const char* libraryPrefix, void* self, void* caller) noexcept {
        const Function function = known();
        if (__builtin_expect(function != nullptr, 1)) return function;
        return find(name, libraryPrefix, self, caller);
    }

  private:
    __attribute__((noinline, cold)) Function find(const char* name, const char* libraryPrefix, void* self,
                                                  void* caller) noexcept {
        bool mayGo = false;
        void* found = findRealSymbol(name, libraryPrefix, self, caller, &mayGo);
        if (found == nullptr) return nullptr;
        m_function.store(found, std::memory_order_relaxed);
        if (mayGo) {
            m_forgettable.address = &m_function;
            listForgettable(m_forgettable);
        }
        return reinterpret_cast<Function>(found);
    }

    std::atomic<void*> m_function{nullptr};
    ForgettableAddress m_forgettable;
};

}  // namespace rankscope::injector
