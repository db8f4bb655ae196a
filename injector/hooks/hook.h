// SPDX-License-Identifier: Apache-2.0
// The shape of a hook that records calls.
#pragma once

#include "injector/export.h"
#include "injector/real_symbol.h"
#include "injector/session/session.h"

/// Defines the exported `function parameters`, which returns int. While nothing is recorded it is two loads and a jump
/// to the real function, without a stack frame; everything else is a function of its own behind it, whose body (the
/// last argument) finds the real one as `real`. `arguments` are the parameters' names in parentheses; `failure` is
/// returned when there is no real function.
///
/// The first function calls nothing: every call in it would make the compiler save registers on the way to the jump. As
/// it jumps to the second one, too, that one's return address is the job's.
#define RANKSCOPE_HOOK(function, library, failure, parameters, arguments, ...)                                \
    RANKSCOPE_EXPORT int function parameters;                                                                 \
    static constinit RealSymbol<decltype(&function)> realSymbolOf_##function;                                 \
    static __attribute__((noinline)) int recorded_##function parameters {                                     \
        const auto real = realSymbolOf_##function.get(#function, library, reinterpret_cast<void*>(&function), \
                                                      __builtin_return_address(0));                           \
        if (__builtin_expect(real == nullptr, 0)) return failure;                                             \
        __VA_ARGS__                                                                                           \
    }                                                                                                         \
    RANKSCOPE_EXPORT int function parameters {                                                                \
        const auto real = realSymbolOf_##function.known();                                                    \
        if (__builtin_expect(real != nullptr && g_session.isPassive(), 1)) return real arguments;             \
        return recorded_##function arguments;                                                                 \
    }                                                                                                         \
    static_assert(true, "takes the semicolon")
