// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace rankscope::injector {

/// Path of the `copy`-th loaded library whose file name starts with `prefix`. False: there is none, or its path does
/// not fit.
bool findLoadedLibrary(const char* prefix, int copy, char* path, size_t pathBytes) noexcept;

/// Around a fork, on the forking thread. dl_iterate_phdr holds a lock of the loader that libc does not renew in a
/// child: none of ours may run while the process forks, and a child, whose parent's threads may have held it for the
/// job's own reasons, does without.
void lockLoadedLibraries() noexcept;
void unlockLoadedLibraries() noexcept;
void renewLoadedLibraries() noexcept;

}  // namespace rankscope::injector
