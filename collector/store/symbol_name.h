// SPDX-License-Identifier: Apache-2.0
// Names of C++ functions as compilers mangle them (Itanium C++ ABI), and as people read them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rankscope::store {

/// "_ZN3foo4gemmIfEEvPT_" is "void foo::gemm<float>(float*)". Nothing for what is no mangled name, or is longer than 8
/// KiB.
std::optional<std::string> demangled(std::string_view name);

/// The function alone, as Nsight Systems' shortName has it: "gemm" of "void foo::gemm<float>(float*)".
std::string_view functionOf(std::string_view demangled);

/// Where the parameter list begins: the first '(' outside of template arguments that is not "(anonymous namespace)";
/// the name's size where there is none.
size_t parametersOf(std::string_view demangled);

}  // namespace rankscope::store
