// SPDX-License-Identifier: Apache-2.0
// The libraries of an earlier CUDA: what they export has not changed but for a few functions, so each calls its
// namesake of the release that is modelled.
#pragma once

#if defined(__x86_64__)
#define RANKSCOPE_JUMP(function) "jmp " function "@PLT\n"
#elif defined(__aarch64__)
#define RANKSCOPE_JUMP(function) "b " function "\n"
#else
#error "an instruction that goes on in another function with the registers and the stack as they are"
#endif

// clang-format off
/// `function` goes on in the function of that name that has the version `library`. Weak: a definition of our own, in
/// the same library, takes its place.
#define RANKSCOPE_FORWARDS(function, library)                                        \
    asm(".text\n"                                                                    \
        ".symver rankscope_newer_" #function ", " #function "@" library "\n"         \
        ".weak " #function "\n"                                                      \
        ".type " #function ", %function\n"                                           \
        #function ": " RANKSCOPE_JUMP("rankscope_newer_" #function)                  \
        ".size " #function ", . - " #function "\n")
// clang-format on
