// SPDX-License-Identifier: Apache-2.0
// Modules that a program loads at run time (compilers such as Triton and NVRTC make them). Their kernels are not
// executed; they take the time that their grid suggests.
#pragma once

#include <cstddef>
#include <string>

namespace rankscope::vgpu {

struct Kernel;
struct Module;

/// Less than the header of the smallest kind there is.
inline constexpr size_t kSmallestImage = 64;

/// Keeps what is known of an image, not the image. Null if it is of no kind that we know.
Module* loadModule(const void* image);
bool unloadModule(Module* module);
/// Null if the module is unknown or has no such kernel, as far as it lets us look: fat binaries are compressed, and
/// believed. The kernel stays known after its module is gone. Says once on stderr that a kernel is not executed.
Kernel* kernelOf(Module* module, const std::string& name);

}  // namespace rankscope::vgpu
