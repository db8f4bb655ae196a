// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/stacks/hang_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "analyzer/cli/stacks/helper_process.h"
#include "analyzer/cli/stacks/native_frames.h"
#include "analyzer/cli/stacks/python_frames.h"
#include "analyzer/cli/stacks/watched_processes.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/output_file.h"
#include "analyzer/text/units.h"
#include "collector/store/folder_access.h"
#include "injector/capture_format/stack_file.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// The symbols of a process of PyTorch's are read in a second or two from a disk that has them; from a file server that
// hangs with the job they never are.
constexpr auto kHelperTime = std::chrono::seconds(60);
constexpr auto kAfterJobTime = std::chrono::seconds(10);

int64_t steadyNowNs() {
    return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

// A tenth of the time-out, so that a stall is told at most so much late. Looking is to list the run's captures, which a
// thousand wrappers may do on one file server, and a few reads for each rank: not too often.
int periodOf(int64_t timeoutNs) {
    return static_cast<int>(std::clamp<int64_t>(timeoutNs / 10 / 1'000'000, 50, 30'000));
}

// The text of the file, with all frames.
std::string describe(const ProcessSnapshot& snapshot, capture::StackFile file) {
    const auto frames = nativeFrames(snapshot);
    for (size_t i = 0; i < snapshot.threads.size(); ++i) {
        const ThreadSnapshot& thread = snapshot.threads[i];
        file.threads.push_back(
            {capture::ThreadStack::Language::native, thread.tid, thread.state, thread.name, frames[i]});
    }
    if (runsPython(snapshot.maps)) {
        PythonStacks python = pythonStacks(snapshot.pid);
        if (!python.refused.empty()) file.notes.push_back("no Python stacks: " + python.refused);
        std::ranges::move(python.threads, std::back_inserter(file.threads));
    }
    return capture::formatStackFile(file);
}

}  // namespace

HangWatch::HangWatch(fs::path runDirectory, int64_t timeoutNs, int64_t delayNs, bool mayWorkUnseen)
    : m_run(std::move(runDirectory)),
      m_timeoutNs(timeoutNs),
      m_periodMs(periodOf(timeoutNs)),
      m_beginNs(steadyNowNs() + delayNs),
      m_stalls(timeoutNs, int64_t{m_periodMs} * 1'000'000, mayWorkUnseen) {}

HangWatch::~HangWatch() {
    jobHasEnded();
}

void HangWatch::jobHasEnded() {
    int64_t living = -1;
    m_endNs.compare_exchange_strong(living, steadyNowNs());
    if (m_reader.joinable()) m_reader.join();
}

void HangWatch::note(std::string text) {
    const std::lock_guard lock(m_notesLock);
    if (text::contains(m_told, text)) return;
    m_told.push_back(text);
    m_notes.push_back(std::move(text));
}

std::vector<std::string> HangWatch::takeNotes() {
    const std::lock_guard lock(m_notesLock);
    return std::exchange(m_notes, {});
}

void HangWatch::look() {
    const int64_t nowNs = steadyNowNs();
    if (nowNs < m_beginNs) return;
    if (m_reading) {
        m_stalls.stillThere(nowNs);
        return;
    }
    std::vector<StalledProcess> stalled;
    try {
        stalled = m_stalls.look(watchedProcesses(m_run / "capture", getpid()), nowNs);
    } catch (const std::exception& error) {  // of a file system that fails; the job goes on
        note(fmt::format("ranks that stand still are not noticed: {}", error.what()));
    }
    if (stalled.empty()) return;
    ++m_timesTold;
    if (m_reader.joinable()) m_reader.join();
    m_reading = true;
    const auto tryTo = [this](const auto& act) {
        try {
            act();
            return true;
        } catch (const std::exception& error) {
            note(fmt::format("stacks of ranks that stand still are not read: {}", error.what()));
            return false;
        }
    };
    const bool started = tryTo([&] {  // a limit on processes counts threads, too
        m_reader = std::thread([this, tryTo, stalled = std::move(stalled)] {
            tryTo([&] { read(stalled); });
            m_reading = false;
        });
    });
    if (!started) m_reading = false;
}

// For what is being read: some seconds after the job's end, which waits for it.
Clock::time_point HangWatch::deadline() const {
    const int64_t endNs = m_endNs;
    return endNs < 0 ? Clock::time_point::max() : Clock::time_point(std::chrono::nanoseconds(endNs)) + kAfterJobTime;
}

void HangWatch::read(const std::vector<StalledProcess>& stalled) {
    // First all of them, so that what is read is of one moment; what takes long comes after.
    std::vector<Reading> readings;
    for (const StalledProcess& one : stalled) {
        std::error_code unknown;
        const auto bytes = fs::file_size(m_run / "capture" / one.process.capture, unknown);
        readings.push_back({takeSnapshot(one.process.pid), unknown ? -1 : static_cast<int64_t>(bytes)});
    }
    const int64_t unixNs =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    store::makeFolderInside(m_run / "stacks");
    for (size_t i = 0; i < stalled.size(); ++i) write(stalled[i], readings[i], unixNs);
    int64_t longestNs = 0;
    for (const Reading& reading : readings) longestNs = std::max(longestNs, reading.snapshot.longestStopNs);
    note(fmt::format("{} recorded no progress for {}: what {} in is in {}{}", text::countedText(stalled.size(), "rank"),
                     text::durationText(static_cast<double>(stalled.front().stalledNs)),
                     stalled.size() == 1 ? "it stands" : "they stand", (m_run / "stacks").string(),
                     longestNs == 0 ? ""
                                    : fmt::format(" (no thread was stopped for more than {})",
                                                  text::durationText(static_cast<double>(longestNs)))));
}

void HangWatch::write(const StalledProcess& stalled, const Reading& reading, int64_t unixNs) {
    const ProcessSnapshot& snapshot = reading.snapshot;
    const std::string stem = fs::path(stalled.process.capture).stem().string();  // HOST.PID.START
    const size_t afterHost = stem.rfind('.', stem.rfind('.') - 1);
    capture::StackFile file{.rank = stalled.process.rank,
                            .host = stem.substr(0, afterHost),
                            .pid = stalled.process.pid,
                            .capture = stalled.process.capture,
                            .readUnixNs = unixNs,
                            .captureBytes = reading.captureBytes,
                            .stalledNs = stalled.stalledNs,
                            .progress = stalled.process.progress};
    if (!snapshot.refused.empty()) {
        file.notes.push_back(
            fmt::format("no native stacks: reading the process is not permitted ({})", snapshot.refused));
        note(
            fmt::format("native stacks of ranks that stand still are not read: {}; in a container, CAP_SYS_PTRACE or a "
                        "seccomp profile that has ptrace permits it",
                        snapshot.refused));
    } else if (!canUnwind()) {
        file.notes.push_back("no native stacks: this rankscope was built without libdw");
    }
    if (snapshot.beyond > 0)
        file.notes.push_back(
            fmt::format("{} of {} threads were not read: only the first {} of a process are", snapshot.beyond,
                        snapshot.threads.size() + static_cast<size_t>(snapshot.beyond), snapshot.threads.size()));
    if (snapshot.untraceable > 0)
        file.notes.push_back(fmt::format(
            "{} not be read: ended before the others, or under a debugger",
            snapshot.untraceable == 1 ? "1 thread could" : fmt::format("{} threads could", snapshot.untraceable)));
    if (snapshot.unread > 0)
        file.notes.push_back(
            fmt::format("{} not stop to be read, as in a wait for a device or a file server",
                        snapshot.unread == 1 ? "1 thread did" : fmt::format("{} threads did", snapshot.unread)));

    const Clock::time_point whole = Clock::now() + kHelperTime;
    std::string text = madeInHelper([&] { return describe(snapshot, file); },
                                    [&] { return Clock::now() >= std::min(whole, deadline()); });
    if (text.empty()) {  // it died, of a damaged library, or took too long
        file.notes.push_back(
            "the frames could not be found: the process that looks for them died or was not done in time");
        for (const ThreadSnapshot& thread : snapshot.threads)
            file.threads.push_back({capture::ThreadStack::Language::native, thread.tid, thread.state, thread.name, {}});
        text = capture::formatStackFile(file);
    }
    const fs::path folder = m_run / "stacks";
    int number = 1;
    const auto nameOf = [&] { return folder / fmt::format("{}.{}.{}.txt", file.host, file.pid, number); };
    for (std::error_code ignored; fs::exists(nameOf(), ignored);) ++number;
    text::writeOutputFile(text, nameOf());
    store::setFileMode(nameOf());
}

}  // namespace rankscope::cli
