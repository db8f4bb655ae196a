// SPDX-License-Identifier: Apache-2.0
// Connections between processes of one machine, by a local address: who asks for one, and who accepts it. Python's
// processes hand each other open files in this way, and PyTorch's data loaders their batches.
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "reference/vgpu/threads/descriptors.h"
#include "reference/vgpu/threads/real_calls.h"
#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {
namespace {

RealCall<int (*)(int, const sockaddr*, socklen_t)> realBind("bind"), realConnect("connect");
RealCall<int (*)(int, int, int, int[2])> realSocketpair("socketpair");

// What a socket that connects is named, if it has no name: in Linux' abstract namespace, with its own key behind it.
// The accepting side reads the key there; nothing else tells it which socket is at the other end.
constexpr char kNamePrefix[] = "\0rankscope-vgpu-";
constexpr size_t kPrefixBytes = sizeof kNamePrefix - 1;
constexpr size_t kKeyDigits = 16;
constexpr socklen_t kPathAt = offsetof(sockaddr_un, sun_path);
constexpr auto kNameBytes = static_cast<socklen_t>(kPathAt + kPrefixBytes + kKeyDigits);

/// Of the two channels of a connection the asking side reads the first.
uint64_t firstChannel(uint64_t asking) {
    return asking;
}
uint64_t secondChannel(uint64_t asking) {
    return keyOfBytes({reinterpret_cast<const char*>(&asking), sizeof asking});
}

/// What a listening socket is called by its address; 0: it has no local one.
uint64_t addressKey(const sockaddr* address, socklen_t bytes) {
    if (!address || bytes <= kPathAt || address->sa_family != AF_UNIX) return 0;
    const char* path = reinterpret_cast<const sockaddr_un*>(address)->sun_path;
    size_t length = bytes - kPathAt;
    if (path[0] != 0) length = strnlen(path, length);
    return keyOfBytes({path, length});
}

bool isStream(int descriptor) {
    int type = 0;
    socklen_t bytes = sizeof type;
    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type != SOCK_DGRAM;
}

/// False if the socket has a name already.
bool giveName(int descriptor, uint64_t key) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, kNamePrefix, kPrefixBytes);
    std::snprintf(name.sun_path + kPrefixBytes, kKeyDigits + 1, "%016llx", static_cast<unsigned long long>(key));
    return realBind(descriptor, reinterpret_cast<const sockaddr*>(&name), kNameBytes) == 0;
}

/// The key in the name of the socket at the other end, or 0.
uint64_t askingKey(int descriptor) {
    sockaddr_un name{};
    socklen_t bytes = sizeof name;
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&name), &bytes) != 0 || name.sun_family != AF_UNIX ||
        bytes != kNameBytes || std::memcmp(name.sun_path, kNamePrefix, kPrefixBytes) != 0)
        return 0;
    char digits[kKeyDigits + 1] = {};
    std::memcpy(digits, name.sun_path + kPrefixBytes, kKeyDigits);
    return std::strtoull(digits, nullptr, 16);
}

/// Told before it is asked for: who accepts it at once must find it.
void tellAsking(int descriptor, uint64_t listener) {
    const uint64_t key = socketKey(descriptor);
    if (key == 0 || !isStream(descriptor) || !giveName(descriptor, key)) return;
    LocalProcess& process = LocalProcess::instance();
    process.tellSocket(key, {firstChannel(key), secondChannel(key)});
    ThreadClock* clock = activeClock();
    if (clock) process.takeTurnInFamily(*clock);
    process.tellWritten(listener, 1, clockNs(clock));
}

}  // namespace

void adoptConnection(int descriptor) {
    const int before = errno;
    if (const uint64_t asking = askingKey(descriptor))
        LocalProcess::instance().tellSocket(socketKey(descriptor), {secondChannel(asking), firstChannel(asking)});
    errno = before;
}

}  // namespace rankscope::vgpu::threads

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::threads;

extern "C" {

int socketpair(int domain, int type, int protocol, int ends[2]) noexcept {
    const int result = realSocketpair(domain, type, protocol, ends);
    if (result != 0 || !anyClock()) return result;
    const uint64_t first = socketKey(ends[0]), second = socketKey(ends[1]);
    LocalProcess::instance().tellSocket(first, {first, second});
    LocalProcess::instance().tellSocket(second, {second, first});
    return result;
}

/// Who asked for a connection by this address before asked somebody else.
int bind(int descriptor, const sockaddr* address, socklen_t bytes) noexcept {
    const int result = realBind(descriptor, address, bytes);
    const uint64_t key = result == 0 && anyClock() ? addressKey(address, bytes) : 0;
    if (key == 0) return result;
    LocalProcess::instance().whenWritten(key, kAllBytes);
    LocalProcess::instance().tellSocket(socketKey(descriptor), {key, 0});
    return result;
}

int connect(int descriptor, const sockaddr* address, socklen_t bytes) {
    if (anyClock())
        if (const uint64_t listener = addressKey(address, bytes)) tellAsking(descriptor, listener);
    return realConnect(descriptor, address, bytes);
}

}  // extern "C"
