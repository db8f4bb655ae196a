// SPDX-License-Identifier: Apache-2.0
#include "injector/machine/host_ports.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "injector/machine/link_rates.h"
#include "injector/text.h"

namespace rankscope::machine {
namespace {

using Path = injector::FixedText<1024>;

Path below(const Path& folder, const char* name) noexcept {
    Path path = folder;
    path.append("/").append(name);
    return path;
}

/// A folder's entries, one after the other; none when it cannot be read.
class Folder {
  public:
    explicit Folder(const Path& path) noexcept : m_folder(path.wasCut() ? nullptr : opendir(path.c_str())) {}
    ~Folder() {
        if (m_folder != nullptr) closedir(m_folder);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    const char* next() noexcept {
        // A machine has some dozens of ports; a folder without end is none of the kernel's.
        constexpr int kMostEntries = 4096;
        while (m_folder != nullptr && m_entries++ < kMostEntries) {
            const dirent* entry = readdir(m_folder);
            if (entry == nullptr) return nullptr;
            if (entry->d_name[0] != '.') return entry->d_name;
        }
        return nullptr;
    }

  private:
    DIR* m_folder;
    int m_entries = 0;
};

bool exists(const Path& path) noexcept {
    return !path.wasCut() && access(path.c_str(), F_OK) == 0;
}

/// The first line of a small file, at most N - 1 bytes.
template <size_t N>
bool readLine(const Path& path, char (&text)[N]) noexcept {
    text[0] = '\0';
    if (path.wasCut()) return false;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return false;
    const ssize_t got = ::read(fd, text, N - 1);
    ::close(fd);
    text[got < 0 ? 0 : got] = '\0';
    text[std::strcspn(text, "\n")] = '\0';
    return text[0] != '\0';
}

/// A virtual function of a card whose own port is listed too.
bool isSecondView(const Path& device, const char* kind) noexcept {
    Folder ports(below(below(device, "physfn"), kind));
    return ports.next() != nullptr;
}

void addInfinibandPort(const Path& port, const char* device, const char* number, LinkList& links) noexcept {
    char text[128];
    if (!readLine(below(port, "state"), text) || std::strncmp(text, "4:", 2) != 0) return;  // 4: ACTIVE
    Link link;
    link.source = capture::LinkSource::sysfs;
    link.count = 1;
    // RoCE, and what says nothing of itself (AWS EFA), go over Ethernet.
    const bool isInfiniband = readLine(below(port, "link_layer"), text) && std::strcmp(text, "InfiniBand") == 0;
    link.bytesPerS = readLine(below(port, "rate"), text) ? portBytesPerS(text, isInfiniband) : 0;
    link.kind = isInfiniband ? capture::LinkKind::infiniband : capture::LinkKind::ethernet;
    injector::FixedText<sizeof link.name> name;
    name.append(device).append("/").append(number);
    injector::copyText(link.name, name.c_str());
    links.add(link);
}

void addInterface(const Path& interface, const char* name, LinkList& links) noexcept {
    constexpr const char* kEthernet =
        "1";  // ARPHRD_ETHER; ARPHRD_INFINIBAND, 32, is IP over a port that is listed as one
    const Path device = below(interface, "device");
    char text[64];
    if (!exists(device) || exists(below(device, "infiniband")) || isSecondView(device, "net")) return;
    if (!readLine(below(interface, "type"), text) || std::strcmp(text, kEthernet) != 0) return;
    if (!readLine(below(interface, "operstate"), text) || std::strcmp(text, "up") != 0) return;
    Link link;
    link.kind = capture::LinkKind::ethernet;
    link.source = capture::LinkSource::sysfs;
    link.count = 1;
    link.bytesPerS = readLine(below(interface, "speed"), text) ? ethernetBytesPerS(text) : 0;
    injector::copyText(link.name, name);
    links.add(link);
}

}  // namespace

void addHostPorts(const char* sysfs, LinkList& links) noexcept {
    Path root;
    root.append(sysfs);
    const Path adapters = below(root, "class/infiniband");
    Folder devices(adapters);
    while (const char* device = devices.next()) {
        const Path adapter = below(adapters, device);
        if (isSecondView(below(adapter, "device"), "infiniband")) continue;
        const Path numbers = below(adapter, "ports");
        Folder ports(numbers);
        while (const char* number = ports.next()) addInfinibandPort(below(numbers, number), device, number, links);
    }
    const Path interfaces = below(root, "class/net");
    Folder names(interfaces);
    while (const char* name = names.next()) addInterface(below(interfaces, name), name, links);
}

const char* sysfsRoot(bool isVirtual) noexcept {
    if (!isVirtual) return "/sys";
    const char* root = std::getenv("RANKSCOPE_SYSFS_ROOT");
    return root != nullptr && root[0] != '\0' ? root : nullptr;  // this machine's ports are none of a virtual host's
}

}  // namespace rankscope::machine
