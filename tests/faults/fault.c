// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, makes one of its calls fail: FAULT=KIND:N, the N-th call of
//   nospace, io   that writes, makes room, syncs, renames or makes a file below FAULT_FOLDER: ENOSPC, EIO
//   short         that writes: it writes half
//   kill          of those of `nospace`: the process is killed in front of it
//   memory        of malloc, calloc and realloc, from main() on: there is none
// in programs called FAULT_PROGRAM. N = 0 fails none. FAULT_COUNT names a file that gets the number of calls of that
// kind.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum Kind { kNone, kNoSpace, kIo, kShort, kKill, kMemory };
static enum Kind g_kind;
static long g_at;
static _Atomic long g_calls;
static int g_inMain;
static char g_folder[4096];

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);

__attribute__((constructor)) static void readFault(void) {
    const char* fault = getenv("FAULT");
    const char* program = getenv("FAULT_PROGRAM");
    const char* folder = getenv("FAULT_FOLDER");
    if (fault == NULL || program == NULL || strcmp(program, program_invocation_short_name) != 0) return;
    const char* names[] = {"", "nospace:", "io:", "short:", "kill:", "memory:"};
    if (folder != NULL) snprintf(g_folder, sizeof g_folder, "%s", folder);
    for (int kind = 1; kind <= kMemory; ++kind)
        if (strncmp(fault, names[kind], strlen(names[kind])) == 0) {
            g_at = atol(fault + strlen(names[kind]));
            g_kind = kind;
        }
}

__attribute__((destructor)) static void tellCount(void) {
    const char* file = getenv("FAULT_COUNT");
    if (g_kind == kNone || file == NULL) return;
    char text[32];
    const int length = snprintf(text, sizeof text, "%ld\n", g_calls);
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0) syscall(SYS_write, fd, text, length);
}

__attribute__((noreturn)) void _exit(int status) {
    tellCount();
    for (;;) syscall(SYS_exit_group, status);
}

static int isTurn(void) {
    return atomic_fetch_add(&g_calls, 1) + 1 == g_at;
}

static int isBelow(const char* path) {
    return g_folder[0] != '\0' && strncmp(path, g_folder, strlen(g_folder)) == 0;
}

static int isOfFolder(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = '\0';
    return isBelow(path);
}

// True: the call has failed, with errno set.
static int fails(int counted) {
    if (!counted || g_kind == kNone || g_kind == kMemory || g_kind == kShort || !isTurn()) return 0;
    if (g_kind == kKill) kill(getpid(), SIGKILL);
    errno = g_kind == kIo ? EIO : ENOSPC;
    return 1;
}

static size_t shortened(int fd, size_t bytes) {
    return g_kind == kShort && bytes > 1 && isOfFolder(fd) && isTurn() ? bytes / 2 : bytes;
}

ssize_t write(int fd, const void* from, size_t bytes) {
    if (fails(isOfFolder(fd))) return -1;
    return syscall(SYS_write, fd, from, shortened(fd, bytes));
}
ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) {
    if (fails(isOfFolder(fd))) return -1;
    return syscall(SYS_pwrite64, fd, from, shortened(fd, bytes), at);
}
ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t at) {
    return pwrite(fd, from, bytes, at);
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
    if (fails(isOfFolder(fd))) return -1;
    if (count > 0 && shortened(fd, parts[0].iov_len) != parts[0].iov_len)
        return syscall(SYS_write, fd, parts[0].iov_base, parts[0].iov_len / 2);
    return syscall(SYS_writev, fd, parts, count);
}
ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t at) {
    if (fails(isOfFolder(fd))) return -1;
    if (count > 0 && shortened(fd, parts[0].iov_len) != parts[0].iov_len)
        return syscall(SYS_pwrite64, fd, parts[0].iov_base, parts[0].iov_len / 2, at);
    return syscall(SYS_pwritev, fd, parts, count, at, 0);
}
int fallocate(int fd, int mode, off_t at, off_t bytes) {
    return fails(isOfFolder(fd)) ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}
int posix_fallocate(int fd, off_t at, off_t bytes) {
    if (fails(isOfFolder(fd))) return errno;
    return syscall(SYS_fallocate, fd, 0, at, bytes) == 0 ? 0 : errno;
}
int posix_fallocate64(int fd, off64_t at, off64_t bytes) {
    return posix_fallocate(fd, at, bytes);
}
int ftruncate(int fd, off_t bytes) {
    return fails(isOfFolder(fd)) ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}
int ftruncate64(int fd, off64_t bytes) {
    return ftruncate(fd, bytes);
}
int fsync(int fd) {
    return fails(isOfFolder(fd)) ? -1 : (int)syscall(SYS_fsync, fd);
}
int fdatasync(int fd) {
    return fails(isOfFolder(fd)) ? -1 : (int)syscall(SYS_fdatasync, fd);
}
int rename(const char* from, const char* to) {
    return fails(isBelow(to)) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int mkdir(const char* path, mode_t mode) {
    return fails(isBelow(path)) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}
int open(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    if (fails((flags & O_CREAT) != 0 && isBelow(path))) return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return open(path, flags, mode);
}

static int (*g_main)(int, char**, char**);
static int enterMain(int count, char** words, char** environment) {
    g_inMain = 1;
    return g_main(count, words, environment);
}
int __libc_start_main(int (*main)(int, char**, char**), int count, char** words, void (*begin)(void), void (*end)(void),
                      void (*endOfLoader)(void), void* stack) {
    __typeof__(&__libc_start_main) real = (__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main");
    g_main = main;
    return real(enterMain, count, words, begin, end, endOfLoader, stack);
}

static int hasNoMemory(void) {
    return g_kind == kMemory && g_inMain && isTurn();
}

void* malloc(size_t bytes) {
    if (hasNoMemory()) return errno = ENOMEM, NULL;
    return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
    if (hasNoMemory()) return errno = ENOMEM, NULL;
    return __libc_calloc(count, bytes);
}
void* realloc(void* from, size_t bytes) {
    if (hasNoMemory()) return errno = ENOMEM, NULL;
    return __libc_realloc(from, bytes);
}
