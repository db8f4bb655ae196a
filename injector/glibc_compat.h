// SPDX-License-Identifier: Apache-2.0
// Included before every source of the preloaded library: binds functions that newer glibc moved or re-versioned to
// their oldest version, so that a library built on Debian 12 loads in a container with glibc 2.28. A test reads the
// result with objdump.
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
#define RANKSCOPE_OLD(function) __asm__(".symver " #function "," #function "@" RANKSCOPE_BASE_VERSION)
RANKSCOPE_OLD(dlopen);
RANKSCOPE_OLD(dlsym);
RANKSCOPE_OLD(dladdr);
RANKSCOPE_OLD(dlerror);
RANKSCOPE_OLD(pthread_create);
RANKSCOPE_OLD(pthread_detach);
RANKSCOPE_OLD(pthread_key_create);
RANKSCOPE_OLD(pthread_setspecific);
RANKSCOPE_OLD(pthread_getspecific);
RANKSCOPE_OLD(pthread_attr_setstacksize);
RANKSCOPE_OLD(pthread_mutex_trylock);
RANKSCOPE_OLD(pthread_once);
RANKSCOPE_OLD(pthread_sigmask);
#undef RANKSCOPE_OLD
#endif
