// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

struct rankscope_mpi;

namespace rankscope::team {

/// What went wrong in another process of the team.
class MemberFailed : public std::runtime_error {
  public:
    MemberFailed(const std::string& what, std::string hint, int status)
        : std::runtime_error(what), m_hint(std::move(hint)), m_status(status) {}
    const std::string& hint() const noexcept { return m_hint; }
    int status() const noexcept { return m_status; }

  private:
    std::string m_hint;
    int m_status;
};

/// Of this machine; "unknown" where it does not say.
std::string hostName();

/// The first process has ended the work, with this exit status for all. Only Team's users in main() catch it.
struct Dismissed {
    int status = 0;
};

/// The processes that mpirun has started for one command. The first one (0) is the command: it speaks, writes and
/// decides. The others do what it shares out, and answer to it alone. Used by one thread.
///
/// What goes between them are messages: a kind (4 bytes), 4 bytes of zero, a length (8 bytes) and so many bytes,
/// little-endian. This, and the first message of each process (Greeting in team.cpp), never changes, so that versions
/// that differ can tell each other so; what is inside is packing.h's, and of one version only.
class Team {
  public:
    /// Nothing where the process was not started by an mpirun (or srun), or is alone. `libraries`: where the MPI
    /// libraries lie; `version`: of the program. Waits for all processes. Throws store::Error where the MPI is not
    /// there, and, in the first process, where versions differ.
    static std::unique_ptr<Team> join(const std::filesystem::path& libraries, const std::string& version);
    /// This process is one that mpirun has started to help the first, as far as its environment tells.
    static bool helps();
    /// It was started by one, alone or with others.
    static bool isLaunched();

    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int size() const { return m_size; }
    int self() const { return m_self; }
    bool isFirst() const { return m_self == 0; }
    /// "process 2 of 4 (on node1)".
    std::string nameOf(int process) const;
    /// The host of each; in other processes than the first only their own is told.
    const std::vector<std::string>& hosts() const { return m_hosts; }
    /// Threads that this process may have where it shares its host with others of the team: one at least.
    unsigned threads() const;
    const std::string& mpi() const { return m_mpiName; }
    /// That were sent to and from this process.
    uint64_t bytesSent() const { return m_sent; }
    uint64_t bytesReceived() const { return m_received; }

    // The first process.
    void sendTo(int process, std::string_view bytes);
    void sendToAll(std::string_view bytes);
    /// receiveFrom() would not wait long.
    bool isWaiting(int process) const;
    /// Throws MemberFailed with what that process tells instead.
    std::string receiveFrom(int process);
    /// The same, for messages that come in many parts: the bytes are there until the next call.
    std::string_view receivePartFrom(int process);
    /// Lets all others end with this status. Those that do not come to it within a few seconds are ended by MPI.
    void dismiss(int status);

    // The others.
    void send(std::string_view bytes);
    /// Throws Dismissed.
    std::string await();
    /// The same, for messages that come in many parts: the bytes are there until the next call.
    std::string_view awaitPart();
    /// Tells the first process why there will be no answer, and waits to be dismissed: returns the status to exit with.
    int fail(const std::string& what, const std::string& hint, int status);
    /// Says goodbye to the first process, who has dismissed this one.
    void leave();

  private:
    enum class Kind : uint32_t { data = 1, shared, failure, dismissal, goodbye };
    struct Message {
        Kind kind = Kind::data;
        std::string bytes;
    };
    Team(const rankscope_mpi* mpi, int self, int size);
    void greet(const std::string& version);
    void put(int process, Kind kind, std::string_view bytes);
    Message get(int process);
    void get(int process, Message& message);
    void getPart(int process);
    /// Throws MemberFailed.
    void refuseFailure(int process, const Message& message) const;
    /// Throws Dismissed.
    static void refuseDismissal(const Message& message);
    void check(int error, const char* what) const;

    const rankscope_mpi* m_mpi;
    std::string m_mpiName;
    int m_self = 0, m_size = 1;
    bool m_ended = false;
    std::vector<std::string> m_hosts;  // by process; of the others than the first: their own only
    unsigned m_onThisHost = 1;
    uint64_t m_sent = 0, m_received = 0;
    Message m_part;  // the last one of many: its memory is used again
};

/// Threads that this process works with: as many as were `asked` for; where that is 0, its share of the host's cores.
/// `team`: nullptr where it is alone.
unsigned threadsFor(unsigned asked, const Team* team);

}  // namespace rankscope::team
