// SPDX-License-Identifier: Apache-2.0
#include "collector/team/team.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "collector/store/error.h"
#include "collector/team/mpi/mpi_interface.h"

namespace rankscope::team {
namespace {

namespace fs = std::filesystem;

/// What each process sends first, as it is in every version.
struct Greeting {
    std::array<char, 8> magic{'r', 's', 't', 'e', 'a', 'm', '\0', '\0'};
    std::array<char, 64> version{};
    std::array<char, 64> host{};
};
static_assert(sizeof(Greeting) == 136);

struct Header {
    uint32_t kind = 0;
    uint32_t zero = 0;
    uint64_t bytes = 0;
};
static_assert(sizeof(Header) == 16);

/// Of a hostile or broken peer: no message of ours comes near it.
constexpr uint64_t kLongestMessage = uint64_t{1} << 40;

/// How long the first process waits for the others to end when the command is over. They may be in the midst of a rank,
/// which takes a fraction of a second, or of a disk that does not answer.
constexpr std::chrono::seconds kPatience{5};

std::optional<int> numberIn(const char* variable) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') return std::nullopt;
    char* end = nullptr;
    const long number = std::strtol(text, &end, 10);
    return *end == '\0' && number >= 0 ? std::optional(static_cast<int>(number)) : std::nullopt;
}

/// How an mpirun tells a process that it is one of several.
struct Launch {
    int rank = 0;
    std::optional<int> size;
    const char* launcher;  // for people
    const char* library;
};

std::optional<Launch> launchOf() {
    if (const char* asked = std::getenv("RANKSCOPE_MPI"); asked != nullptr && std::string_view(asked) == "off")
        return std::nullopt;
    // Open MPI sets PMIX_RANK too, and some MPICH launchers do: what only one of them has goes first.
    if (const auto rank = numberIn("OMPI_COMM_WORLD_RANK"))
        return Launch{*rank, numberIn("OMPI_COMM_WORLD_SIZE"), "Open MPI", "librankscope_mpi_openmpi.so"};
    if (const auto rank = numberIn("PMI_RANK"))
        return Launch{*rank, numberIn("PMI_SIZE"), "MPICH", "librankscope_mpi_mpich.so"};
    if (const auto rank = numberIn("PMIX_RANK"))
        return Launch{*rank, numberIn("SLURM_STEP_NUM_TASKS"), "PMIx", "librankscope_mpi_openmpi.so"};
    return std::nullopt;
}

template <size_t N>
void put(std::array<char, N>& to, const std::string& text) {
    std::memcpy(to.data(), text.data(), std::min(text.size(), N - 1));
}

template <size_t N>
std::string textOf(const std::array<char, N>& from) {
    return std::string(from.data(), strnlen(from.data(), N));
}

const rankscope_mpi* load(const Launch& launch, const fs::path& libraries) {
    const std::string file = (libraries / launch.library).string();
    // MPI's own plugins look for its symbols among those of the whole program.
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    const char* loaderSays = library == nullptr ? dlerror() : nullptr;
    using Ask = const rankscope_mpi* (*)();
    const Ask interface =
        library == nullptr ? nullptr : reinterpret_cast<Ask>(dlsym(library, "rankscope_mpi_interface"));
    const rankscope_mpi* mpi = interface == nullptr ? nullptr : interface();
    std::error_code ignored;
    if (library == nullptr && !fs::exists(file, ignored))
        throw store::Error(file,
                           fmt::format("this process was started by {}'s mpirun with others, and there is no library "
                                       "for it",
                                       launch.launcher),
                           "start rankscope without mpirun, install its Debian package for that MPI "
                           "(rankscope-openmpi, rankscope-mpich), or build it where that MPI's headers are "
                           "(packages libopenmpi-dev, libmpich-dev)");
    if (library == nullptr)
        throw store::Error(file, std::string("cannot be loaded: ") + (loaderSays ? loaderSays : "?"),
                           "start rankscope without mpirun, or install the MPI that it names");
    if (mpi == nullptr || mpi->interface_version != RANKSCOPE_MPI_INTERFACE)
        throw store::Error(file, "is of another version of rankscope", "install both from one build");
    return mpi;
}

}  // namespace

std::string hostName() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("unknown");
}

bool Team::helps() {
    const std::optional<Launch> launch = launchOf();
    return launch && launch->size.value_or(2) > 1 && launch->rank > 0;
}

bool Team::isLaunched() {
    return launchOf().has_value();
}

std::unique_ptr<Team> Team::join(const fs::path& libraries, const std::string& version) {
    const std::optional<Launch> launch = launchOf();
    if (!launch || launch->size.value_or(2) < 2) return nullptr;
    const rankscope_mpi* mpi = load(*launch, libraries);
    int self = 0, size = 1;
    if (const int error = mpi->start(&self, &size); error != 0)
        throw store::Error(mpi->name, fmt::format("MPI_Init fails with error {}", error), {});
    if (launch->size && size != *launch->size)
        throw store::Error(mpi->name,
                           fmt::format("{}'s mpirun has started {} processes, and this library sees {}",
                                       launch->launcher, *launch->size, size),
                           "use the mpirun that belongs to the MPI that rankscope was built with");
    std::unique_ptr<Team> team(new Team(mpi, self, size));
    if (size < 2) return nullptr;
    try {
        team->greet(version);
    } catch (const Dismissed&) {
        team->leave();
        throw;
    }
    return team;
}

Team::Team(const rankscope_mpi* mpi, int self, int size)
    : m_mpi(mpi), m_mpiName(mpi->name), m_self(self), m_size(size), m_hosts(static_cast<size_t>(size)) {}

Team::~Team() {
    if (m_size > 1 && !m_ended) return;  // the others are not there any more: MPI would wait for them
    m_mpi->end();
}

void Team::check(int error, const char* what) const {
    if (error == 0) return;
    std::array<char, 512> text{};
    m_mpi->explain(error, text.data(), text.size());
    throw store::Error(m_mpiName, fmt::format("{}: {}", what, text.data()), {});
}

void Team::put(int process, Kind kind, std::string_view bytes) {
    const Header header{static_cast<uint32_t>(kind), 0, bytes.size()};
    check(m_mpi->send(process, &header, sizeof header), "send");
    if (!bytes.empty() && kind != Kind::shared) check(m_mpi->send(process, bytes.data(), bytes.size()), "send");
    m_sent += sizeof header + bytes.size();
}

Team::Message Team::get(int process) {
    Message message;
    get(process, message);
    return message;
}

void Team::get(int process, Message& message) {
    Header header;
    check(m_mpi->receive(process, &header, sizeof header), "receive");
    if (header.bytes > kLongestMessage) throw store::Error(nameOf(process), "sent no message of rankscope's", {});
    message.kind = static_cast<Kind>(header.kind);
    message.bytes.resize(header.bytes);
    char* data = message.bytes.data();
    if (message.kind == Kind::shared)
        check(m_mpi->broadcast(data, header.bytes), "broadcast");
    else if (header.bytes > 0)
        check(m_mpi->receive(process, data, header.bytes), "receive");
    m_received += sizeof header + header.bytes;
}

void Team::greet(const std::string& version) {
    Greeting own;
    team::put(own.version, version);
    team::put(own.host, hostName());
    m_hosts[static_cast<size_t>(m_self)] = hostName();
    if (!isFirst()) {
        put(0, Kind::data, {reinterpret_cast<const char*>(&own), sizeof own});
        const std::string answer = await();  // how many of the team are on this host
        m_onThisHost = answer.size() == sizeof(uint32_t) ? 0 : 1;
        if (m_onThisHost == 0) std::memcpy(&m_onThisHost, answer.data(), sizeof(uint32_t));
        return;
    }
    std::string other;
    for (int process = 1; process < m_size; ++process) {
        const Message message = get(process);
        Greeting greeting;
        if (message.bytes.size() == sizeof greeting) std::memcpy(&greeting, message.bytes.data(), sizeof greeting);
        m_hosts[static_cast<size_t>(process)] = textOf(greeting.host);
        if (message.bytes.size() != sizeof greeting || greeting.magic != own.magic || greeting.version != own.version)
            if (other.empty())
                other = fmt::format("{} is rankscope {}, {} is rankscope {}", nameOf(process), textOf(greeting.version),
                                    nameOf(0), version);
    }
    if (!other.empty()) {
        dismiss(0);  // mpirun ends all when the first one fails: that must be this one, when it has told why
        throw MemberFailed("different versions cannot work together: " + other,
                           "install the same version of rankscope on all nodes", 3);
    }
    for (int process = 0; process < m_size; ++process) {
        const auto together = static_cast<uint32_t>(std::ranges::count(m_hosts, m_hosts[static_cast<size_t>(process)]));
        if (process == 0)
            m_onThisHost = together;
        else
            put(process, Kind::data, {reinterpret_cast<const char*>(&together), sizeof together});
    }
}

std::string Team::nameOf(int process) const {
    const std::string& host = m_hosts[static_cast<size_t>(process)];
    return fmt::format("process {} of {}{}", process, m_size, host.empty() ? "" : fmt::format(" (on {})", host));
}

unsigned Team::threads() const {
    return std::max(1u, std::thread::hardware_concurrency() / std::max(1u, m_onThisHost));
}

unsigned threadsFor(unsigned asked, const Team* team) {
    if (asked != 0) return asked;
    return team != nullptr ? team->threads() : std::max(1u, std::thread::hardware_concurrency());
}

void Team::sendTo(int process, std::string_view bytes) {
    put(process, Kind::data, bytes);
}

void Team::sendToAll(std::string_view bytes) {
    for (int process = 1; process < m_size; ++process) put(process, Kind::shared, bytes);
    // MPI takes what is sent for writable, and does not write where it is sent from.
    check(m_mpi->broadcast(const_cast<char*>(bytes.data()), bytes.size()), "broadcast");
}

bool Team::isWaiting(int process) const {
    return m_mpi->is_waiting(process) != 0;
}

std::string Team::receiveFrom(int process) {
    Message message = get(process);
    refuseFailure(process, message);
    return std::move(message.bytes);
}

std::string_view Team::receivePartFrom(int process) {
    getPart(process);
    refuseFailure(process, m_part);
    return m_part.bytes;
}

void Team::refuseFailure(int process, const Message& message) const {
    if (message.kind == Kind::data) return;
    // A failure: status, length of what, what, hint.
    uint32_t status = 0, length = 0;
    if (message.kind != Kind::failure || message.bytes.size() < 8)
        throw MemberFailed(nameOf(process) + " sent what nobody asked for", {}, 4);
    std::memcpy(&status, message.bytes.data(), 4);
    std::memcpy(&length, message.bytes.data() + 4, 4);
    const std::string text = message.bytes.substr(8);
    throw MemberFailed(fmt::format("{} ({})", text.substr(0, length), nameOf(process)),
                       length < text.size() ? text.substr(length) : std::string(), static_cast<int>(status));
}

void Team::dismiss(int status) {
    if (m_ended) return;
    const auto word = static_cast<uint32_t>(status);
    for (int process = 1; process < m_size; ++process)
        put(process, Kind::dismissal, {reinterpret_cast<const char*>(&word), sizeof word});
    std::vector<int> left;
    for (int process = 1; process < m_size; ++process) left.push_back(process);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!left.empty()) {
        const size_t before = left.size();
        std::erase_if(left, [this](int process) {
            return m_mpi->is_waiting(process) && get(process).kind == Kind::goodbye;  // what it had to say is of no use
        });
        if (left.empty() || left.size() < before) continue;
        if (std::chrono::steady_clock::now() > until) m_mpi->abort(status);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    m_ended = true;
}

void Team::send(std::string_view bytes) {
    put(0, Kind::data, bytes);
}

std::string Team::await() {
    Message message = get(0);
    refuseDismissal(message);
    return std::move(message.bytes);
}

std::string_view Team::awaitPart() {
    getPart(0);
    refuseDismissal(m_part);
    return m_part.bytes;
}

void Team::getPart(int process) {
    constexpr size_t kMostKept = 4 << 20;  // bytes: parts of lists are smaller (long_lists.h)
    if (m_part.bytes.capacity() > kMostKept) m_part.bytes = {};
    get(process, m_part);
}

void Team::refuseDismissal(const Message& message) {
    if (message.kind != Kind::dismissal) return;
    uint32_t status = 0;
    std::memcpy(&status, message.bytes.data(), std::min(sizeof status, message.bytes.size()));
    throw Dismissed{static_cast<int>(status)};
}

int Team::fail(const std::string& what, const std::string& hint, int status) {
    const uint32_t numbers[] = {static_cast<uint32_t>(status), static_cast<uint32_t>(what.size())};
    put(0, Kind::failure, std::string(reinterpret_cast<const char*>(numbers), sizeof numbers) + what + hint);
    try {
        for (;;) await();
    } catch (const Dismissed& dismissed) {
        leave();
        return dismissed.status;
    }
}

void Team::leave() {
    put(0, Kind::goodbye, {});
    m_ended = true;
}

}  // namespace rankscope::team
