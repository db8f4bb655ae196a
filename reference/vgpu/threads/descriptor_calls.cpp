// SPDX-License-Identifier: Apache-2.0
// The calls of libc that read, write and wait for descriptors. Those of threads without a clock go straight through.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "reference/vgpu/device/seconds.h"
#include "reference/vgpu/device/wait_keys.h"
#include "reference/vgpu/threads/descriptors.h"
#include "reference/vgpu/threads/real_calls.h"
#include "reference/vgpu/threads/sleeps.h"
#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {
namespace {

RealCall<int (*)(pollfd*, nfds_t, int)> realPoll("poll");
RealCall<int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*)> realPpoll("ppoll");
RealCall<int (*)(int, fd_set*, fd_set*, fd_set*, timeval*)> realSelect("select");
RealCall<int (*)(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)> realPselect("pselect");
RealCall<int (*)(int, epoll_event*, int, int)> realEpollWait("epoll_wait");
RealCall<int (*)(int, epoll_event*, int, int, const sigset_t*)> realEpollPwait("epoll_pwait");
RealCall<ssize_t (*)(int, void*, size_t)> realRead("read");
RealCall<ssize_t (*)(int, const iovec*, int)> realReadv("readv"), realWritev("writev");
RealCall<ssize_t (*)(int, const void*, size_t)> realWrite("write");
RealCall<ssize_t (*)(int, void*, size_t, int)> realRecv("recv");
RealCall<ssize_t (*)(int, void*, size_t, int, sockaddr*, socklen_t*)> realRecvfrom("recvfrom");
RealCall<ssize_t (*)(int, msghdr*, int)> realRecvmsg("recvmsg");
RealCall<ssize_t (*)(int, const void*, size_t, int)> realSend("send");
RealCall<ssize_t (*)(int, const msghdr*, int)> realSendmsg("sendmsg");
RealCall<int (*)(int, sockaddr*, socklen_t*)> realAccept("accept");
RealCall<int (*)(int, sockaddr*, socklen_t*, int)> realAccept4("accept4");
RealCall<pid_t (*)(pid_t, int*, int)> realWaitpid("waitpid");
RealCall<pid_t (*)(int*)> realWaitAny("wait");
RealCall<pid_t (*)(pid_t, int*, int, rusage*)> realWait4("wait4");
RealCall<int (*)(idtype_t, id_t, siginfo_t*, int)> realWaitid("waitid");

bool isReady(int descriptor, short events) {
    pollfd one{descriptor, events, 0};
    const int before = errno;
    const bool ready = realPoll(&one, 1, 0) != 0;
    errno = before;
    return ready;
}

bool wouldBlock(int descriptor, short events) {
    return !isReady(descriptor, events) && !(fcntl(descriptor, F_GETFL) & O_NONBLOCK);
}

/// One that reads: blocked, if it must, for as long as nothing is there.
template <typename Read>
ssize_t readFrom(int descriptor, const char* call, Read realCall) {
    if (!anyClock()) return realCall();
    ssize_t result;
    if (wouldBlock(descriptor, POLLIN)) {
        const uint64_t key = readKey(descriptor);
        const BlockedOutside blocked(call, {&key, key ? 1u : 0u});
        result = realCall();
    } else {
        result = realCall();
    }
    const int error = errno;
    if (result == 0)
        sawEnd(readKey(descriptor));
    else
        hasRead(descriptor, result);
    errno = error;
    return result;
}

/// A connection that is asked for counts as one byte.
template <typename Accept>
int acceptFrom(int descriptor, Accept realCall) {
    int accepted = -1;
    readFrom(descriptor, "accept", [&]() -> ssize_t { return (accepted = realCall()) < 0 ? -1 : 1; });
    if (accepted >= 0 && anyClock()) adoptConnection(accepted);
    return accepted;
}

template <typename Write>
ssize_t writeTo(int descriptor, size_t bytes, const char* call, Write realCall) {
    if (!anyClock()) return realCall();
    wrote(descriptor, bytes);
    if (!wouldBlock(descriptor, POLLOUT)) return realCall();
    const BlockedOutside blocked(call);
    return realCall();
}

/// Who is told that something was written counts as running. Another thread may read it before this one looks: it then
/// waits for the next.
template <typename Look>
int waitForEver(const char* call, std::span<const uint64_t> keys, Look look) {
    for (;;) {
        const BlockedOutside blocked(call, keys);
        do {
            if (const int ready = look(BlockedOutside::stretchMs(-1))) return ready;
        } while (!blocked.wasToldInVain(keys));
    }
}

/// One that waits for any of several. `look(ms)` is the call itself, for so long; a wait that has an end is made of
/// stretches.
template <typename Look, typename Wait>
int waitForAny(const char* call, std::span<const uint64_t> keys, int64_t timeoutNs, Look look, Wait whole) {
    if (timeoutNs == 0 || !anyClock()) return whole();
    if (const int ready = look(0)) return ready;
    if (timeoutNs < 0 && !keys.empty()) return waitForEver(call, keys, look);
    BlockedOutside blocked(call, keys, timeoutNs);
    if (timeoutNs < 0) return whole();
    for (const Deadline end = deadlineIn(timeoutNs);;) {
        const int64_t leftMs = std::max<int64_t>(1, leftNs(end) / kNsPerMs);
        const int ready = look(BlockedOutside::stretchMs(leftMs));
        if (ready != 0) return ready;
        if (!blocked.isOver(leftNs(end) <= 0)) continue;
        sleepOut(end);
        return look(0);
    }
}

size_t totalBytes(const iovec* parts, int count) {
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += parts[i].iov_len;
    return bytes;
}

template <typename Poll>
int pollFor(pollfd* descriptors, nfds_t count, int64_t timeoutNs, Poll realCall) {
    uint64_t keys[kMaxWaitKeys];
    size_t keyCount = 0;
    if (timeoutNs != 0 && anyClock())
        for (nfds_t i = 0; i < count && keyCount < kMaxWaitKeys; i++)
            if (const uint64_t key = descriptors[i].events & POLLIN ? readKey(descriptors[i].fd) : 0)
                keys[keyCount++] = key;
    const int ready = waitForAny(
        "poll", {keys, keyCount}, timeoutNs, [&](int ms) { return realPoll(descriptors, count, ms); }, realCall);
    if (ready <= 0 || !anyClock()) return ready;
    std::vector<int> readable;
    for (nfds_t i = 0; i < count; i++) {
        if (descriptors[i].revents & POLLIN)
            readable.push_back(descriptors[i].fd);
        else if (descriptors[i].revents & POLLHUP)
            sawEnd(readKey(descriptors[i].fd));
    }
    sawReady(readable);
    return ready;
}

/// select() overwrites what it is asked for, so each look has its own copy.
template <typename Select>
int selectFor(int count, fd_set* in, fd_set* out, fd_set* except, int64_t timeoutNs, Select realCall) {
    if (timeoutNs == 0 || !anyClock()) return realCall();
    std::vector<uint64_t> keys;
    for (int descriptor = 0; in && descriptor < count && keys.size() < kMaxWaitKeys; descriptor++)
        if (FD_ISSET(descriptor, in))
            if (const uint64_t key = readKey(descriptor)) keys.push_back(key);
    fd_set before[3];
    fd_set* given[3] = {in, out, except};
    for (int i = 0; i < 3; i++)
        if (given[i]) before[i] = *given[i];
    auto look = [&](int ms) {
        for (int i = 0; i < 3; i++)
            if (given[i]) *given[i] = before[i];
        timeval stretch{0, ms * 1000};
        return realSelect(count, in, out, except, &stretch);
    };
    const int ready = waitForAny("select", keys, timeoutNs, look, [&] {
        for (int i = 0; i < 3; i++)
            if (given[i]) *given[i] = before[i];
        return realCall();
    });
    std::vector<int> readable;
    for (int descriptor = 0; ready > 0 && in && descriptor < count; descriptor++)
        if (FD_ISSET(descriptor, in)) readable.push_back(descriptor);
    sawReady(readable);
    return ready;
}

int64_t inNs(const timespec* time) {
    return time ? time->tv_sec * kNsPerS + time->tv_nsec : -1;
}

/// `child` as for waitpid(): one of this process, or any. `realCall` returns the one that has ended, 0 or less if none.
template <typename Wait>
pid_t waitForChild(pid_t child, int options, const char* call, Wait realCall) {
    if (!anyClock()) return realCall();
    pid_t ended;
    if (options & WNOHANG) {
        ended = realCall();
    } else {
        const uint64_t key = child > 0 ? childKey(child) : anyChildKey(getpid());
        const BlockedOutside blocked(call, {&key, 1});
        ended = realCall();
    }
    const int error = errno;
    if (ended > 0) sawEnd(childKey(ended));
    errno = error;
    return ended;
}

}  // namespace
}  // namespace rankscope::vgpu::threads

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::threads;

#define RANKSCOPE_NOT_OURS() (callerAt(__builtin_return_address(0)) == Caller::profiler)

extern "C" {

int poll(pollfd* descriptors, nfds_t count, int timeoutMs) {
    if (RANKSCOPE_NOT_OURS()) return realPoll(descriptors, count, timeoutMs);
    return pollFor(descriptors, count, timeoutMs < 0 ? -1 : timeoutMs * kNsPerMs,
                   [&] { return realPoll(descriptors, count, timeoutMs); });
}
int __poll_chk(pollfd* descriptors, nfds_t count, int timeoutMs, size_t) {
    return pollFor(descriptors, count, timeoutMs < 0 ? -1 : timeoutMs * kNsPerMs,
                   [&] { return realPoll(descriptors, count, timeoutMs); });
}
int ppoll(pollfd* descriptors, nfds_t count, const timespec* timeout, const sigset_t* signals) {
    return pollFor(descriptors, count, inNs(timeout), [&] { return realPpoll(descriptors, count, timeout, signals); });
}
int select(int count, fd_set* in, fd_set* out, fd_set* except, timeval* timeout) {
    const int64_t timeoutNs = timeout ? timeout->tv_sec * kNsPerS + timeout->tv_usec * 1000 : -1;
    return selectFor(count, in, out, except, timeoutNs, [&] { return realSelect(count, in, out, except, timeout); });
}
int pselect(int count, fd_set* in, fd_set* out, fd_set* except, const timespec* timeout, const sigset_t* signals) {
    return selectFor(count, in, out, except, inNs(timeout),
                     [&] { return realPselect(count, in, out, except, timeout, signals); });
}
int epoll_wait(int epoll, epoll_event* events, int most, int timeoutMs) {
    return waitForAny(
        "epoll_wait", {}, timeoutMs < 0 ? -1 : timeoutMs * kNsPerMs,
        [&](int ms) { return realEpollWait(epoll, events, most, ms); },
        [&] { return realEpollWait(epoll, events, most, timeoutMs); });
}
int epoll_pwait(int epoll, epoll_event* events, int most, int timeoutMs, const sigset_t* signals) {
    return waitForAny(
        "epoll_pwait", {}, timeoutMs < 0 ? -1 : timeoutMs * kNsPerMs,
        [&](int ms) { return realEpollPwait(epoll, events, most, ms, signals); },
        [&] { return realEpollPwait(epoll, events, most, timeoutMs, signals); });
}

ssize_t read(int descriptor, void* buffer, size_t bytes) {
    if (RANKSCOPE_NOT_OURS()) return realRead(descriptor, buffer, bytes);
    return readFrom(descriptor, "read", [&] { return realRead(descriptor, buffer, bytes); });
}
ssize_t __read_chk(int descriptor, void* buffer, size_t bytes, size_t) {
    return readFrom(descriptor, "read", [&] { return realRead(descriptor, buffer, bytes); });
}
ssize_t readv(int descriptor, const iovec* parts, int count) {
    return readFrom(descriptor, "readv", [&] { return realReadv(descriptor, parts, count); });
}
ssize_t recv(int descriptor, void* buffer, size_t bytes, int flags) {
    return readFrom(descriptor, "recv", [&] { return realRecv(descriptor, buffer, bytes, flags); });
}
ssize_t __recv_chk(int descriptor, void* buffer, size_t bytes, size_t, int flags) {
    return readFrom(descriptor, "recv", [&] { return realRecv(descriptor, buffer, bytes, flags); });
}
ssize_t recvfrom(int descriptor, void* buffer, size_t bytes, int flags, sockaddr* from, socklen_t* length) {
    return readFrom(descriptor, "recvfrom",
                    [&] { return realRecvfrom(descriptor, buffer, bytes, flags, from, length); });
}
ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
    return readFrom(descriptor, "recvmsg", [&] { return realRecvmsg(descriptor, message, flags); });
}
int accept(int descriptor, sockaddr* from, socklen_t* length) {
    return acceptFrom(descriptor, [&] { return realAccept(descriptor, from, length); });
}
int accept4(int descriptor, sockaddr* from, socklen_t* length, int flags) {
    return acceptFrom(descriptor, [&] { return realAccept4(descriptor, from, length, flags); });
}

ssize_t write(int descriptor, const void* buffer, size_t bytes) {
    if (RANKSCOPE_NOT_OURS()) return realWrite(descriptor, buffer, bytes);
    return writeTo(descriptor, bytes, "write", [&] { return realWrite(descriptor, buffer, bytes); });
}
ssize_t writev(int descriptor, const iovec* parts, int count) {
    if (RANKSCOPE_NOT_OURS()) return realWritev(descriptor, parts, count);
    return writeTo(descriptor, totalBytes(parts, count), "writev",
                   [&] { return realWritev(descriptor, parts, count); });
}
ssize_t send(int descriptor, const void* buffer, size_t bytes, int flags) {
    return writeTo(descriptor, bytes, "send", [&] { return realSend(descriptor, buffer, bytes, flags); });
}
ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
    return writeTo(descriptor, totalBytes(message->msg_iov, static_cast<int>(message->msg_iovlen)), "sendmsg",
                   [&] { return realSendmsg(descriptor, message, flags); });
}

pid_t waitpid(pid_t child, int* status, int options) {
    return waitForChild(child, options, "waitpid", [&] { return realWaitpid(child, status, options); });
}
pid_t wait(int* status) {
    return waitForChild(-1, 0, "wait", [&] { return realWaitAny(status); });
}
pid_t wait4(pid_t child, int* status, int options, rusage* usage) noexcept {
    return waitForChild(child, options, "wait4", [&] { return realWait4(child, status, options, usage); });
}
int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
    int result = 0;
    waitForChild(type == P_PID ? static_cast<pid_t>(id) : -1, options, "waitid", [&]() -> pid_t {
        result = realWaitid(type, id, info, options);
        return result == 0 && info && (options & WEXITED) ? info->si_pid : 0;
    });
    return result;
}

}  // extern "C"
