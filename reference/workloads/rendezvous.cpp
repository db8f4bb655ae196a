// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/rendezvous.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace rankscope::reference {

namespace {

constexpr char kMagic[8] = {'R', 'S', 'N', 'C', 'C', 'L', 'I', 'D'};

/// What the file holds. The writer is named so that a file left over from a dead job of the same key is not taken for
/// ours.
struct Greeting {
    char magic[8];
    char bootId[40];
    int64_t writerPid;
    char jobKey[512];
    ncclUniqueId id;
};

std::string storeFolder() {
    for (const char* name : {"RANKSCOPE_WORKLOAD_STORE", "TMPDIR"})
        if (const char* folder = getenv(name); folder && *folder) return folder;
    return "/tmp";
}

uint64_t hashOf(const std::string& text) {
    uint64_t hash = 1469598103934665603u;  // FNV-1a
    for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
    return hash;
}

void readBootId(char (&bootId)[40]) {
    memset(bootId, 0, sizeof bootId);
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t length = read(file, bootId, sizeof bootId - 1);
    (void)length;  // an empty boot id only switches the check of the writer off
    close(file);
}

}  // namespace

Rendezvous::Rendezvous(const Identity& identity) : m_identity(identity) {
    char name[64];
    snprintf(name, sizeof name, "/rankscope-job-%u-%016" PRIx64 ".ncclid", getuid(), hashOf(identity.jobKey));
    m_path = storeFolder() + name;
}

Rendezvous::~Rendezvous() {
    if (m_identity.rank == 0) unlink(m_path.c_str());
}

ncclUniqueId Rendezvous::exchange(const ncclUniqueId* own, std::chrono::seconds timeout) {
    if (own) {
        publish(*own);
        return *own;
    }
    ncclUniqueId id;
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!tryRead(id)) {
        if (std::chrono::steady_clock::now() > deadline)
            throw RendezvousError("rank " + std::to_string(m_identity.rank) + " waited " +
                                  std::to_string(timeout.count()) + " s for rank 0's file " + m_path + " (job " +
                                  m_identity.jobKey +
                                  "); rank 0 did not start, or the ranks share no folder: set RANKSCOPE_WORKLOAD_STORE "
                                  "to one they share");
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return id;
}

void Rendezvous::publish(const ncclUniqueId& id) const {
    Greeting message{};
    memcpy(message.magic, kMagic, sizeof kMagic);
    readBootId(message.bootId);
    message.writerPid = getpid();
    snprintf(message.jobKey, sizeof message.jobKey, "%s", m_identity.jobKey.c_str());
    message.id = id;
    // Written beside and renamed: nobody reads half a message.
    const std::string beside = m_path + "." + std::to_string(getpid());
    const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool written = file >= 0 && write(file, &message, sizeof message) == static_cast<ssize_t>(sizeof message);
    const int writeError = errno;
    if (file >= 0) close(file);
    if (!written) throw RendezvousError(beside + ": cannot be written: " + strerror(writeError));
    if (rename(beside.c_str(), m_path.c_str()) != 0)
        throw RendezvousError(m_path + ": cannot be renamed to: " + strerror(errno));
}

bool Rendezvous::tryRead(ncclUniqueId& id) const {
    const int file = open(m_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return false;
    Greeting message{};
    const bool complete = read(file, &message, sizeof message) == static_cast<ssize_t>(sizeof message);
    struct stat status {};
    const bool ours = fstat(file, &status) == 0 && status.st_uid == getuid();
    close(file);
    message.jobKey[sizeof message.jobKey - 1] = 0;
    if (!complete || !ours || memcmp(message.magic, kMagic, sizeof kMagic) != 0) return false;
    if (m_identity.jobKey.substr(0, sizeof message.jobKey - 1) != message.jobKey) return false;
    char bootId[40];
    readBootId(bootId);
    const bool sameMachine = bootId[0] && memcmp(bootId, message.bootId, sizeof bootId) == 0;
    if (sameMachine && kill(static_cast<pid_t>(message.writerPid), 0) != 0 && errno == ESRCH) return false;
    id = message.id;
    return true;
}

}  // namespace rankscope::reference
