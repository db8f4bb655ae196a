// SPDX-License-Identifier: Apache-2.0
// Included before every source of the preloaded library: binds functions that newer glibc moved or re-versioned to
// their oldest version, so that a library built on Debian 12 loads in a container with glibc 2.28. A test reads the
// result with objdump.
//
// Before glibc 2.34 these functions are in libdl and libpthread. The preloaded library does not ask for the two: each
// costs every process of the job 50 us, and those that use a GPU have them. So the functions are weak, and a process
// that has not got them is not recorded (entry/constructor.cpp).
#pragma once

#if defined(__linux__) && defined(__GLIBC_PREREQ)
#define RANKSCOPE_HAVE_GLIBC 1
#elif defined(__linux__)
#include <features.h>
#define RANKSCOPE_HAVE_GLIBC 1
#endif

#if defined(RANKSCOPE_HAVE_GLIBC)
#if defined(__x86_64__)
#define RANKSCOPE_BASE_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define RANKSCOPE_BASE_VERSION "GLIBC_2.17"
#endif
#define RANKSCOPE_PRAGMA(words) _Pragma(#words)
#define RANKSCOPE_OLD(function) \
    RANKSCOPE_PRAGMA(weak function) __asm__(".symver " #function "," #function "@" RANKSCOPE_BASE_VERSION)
RANKSCOPE_OLD(dlopen);
RANKSCOPE_OLD(dlsym);
RANKSCOPE_OLD(dladdr);
RANKSCOPE_OLD(dlerror);
RANKSCOPE_OLD(pthread_create);
RANKSCOPE_OLD(pthread_key_create);
RANKSCOPE_OLD(pthread_setspecific);
RANKSCOPE_OLD(pthread_attr_setstacksize);
RANKSCOPE_OLD(pthread_mutex_trylock);
#undef RANKSCOPE_OLD
#undef RANKSCOPE_PRAGMA
#endif
