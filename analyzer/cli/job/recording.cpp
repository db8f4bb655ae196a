// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/recording.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/install_layout.h"
#include "analyzer/cli/console/shared_library.h"
#include "analyzer/cli/job/helper_program.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

enum class ProgramKind { unknown, dynamicProgram, staticProgram, otherMachine };

ProgramKind programKind(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    Elf64_Ehdr header{};
    if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
        std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return ProgramKind::unknown;
    if (header.e_ident[EI_CLASS] != ELFCLASS64) return ProgramKind::otherMachine;
    for (int i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment{};
        file.seekg(static_cast<std::streamoff>(header.e_phoff + static_cast<uint64_t>(i) * header.e_phentsize));
        if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return ProgramKind::unknown;
        if (segment.p_type == PT_INTERP) return ProgramKind::dynamicProgram;
    }
    return ProgramKind::staticProgram;
}

// Tells why a process of the job could not make its capture file and ring; empty when there is no obstacle now.
std::string whyNoFileFits(const std::filesystem::path& folder) {
    constexpr off_t kSmallestRecording = 1 << 20;
    const std::string probe = (folder / ".probe").string();
    const int descriptor = open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0) return std::strerror(errno);
    const int cause = posix_fallocate(descriptor, 0, kSmallestRecording);
    close(descriptor);
    unlink(probe.c_str());
    return cause == 0 || cause == EOPNOTSUPP || cause == EINVAL ? std::string() : std::strerror(cause);
}

// Returns the likeliest reason why a job left no recording, found by looking at its command (a statically linked or
// privileged program is not injected), at the place of the recording and at the machine.
std::string whyNothingRecorded(const ProcessToStart& job, const std::filesystem::path& captureFolder) {
    const std::string path = findCommand(job.command.front(), job.environment);
    struct stat status {};
    if (!path.empty() && stat(path.c_str(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)))
        return fmt::format("{} is setuid or setgid: the system does not load the injector into privileged programs",
                           path);
    if (!path.empty() && programKind(path) == ProgramKind::staticProgram)
        return fmt::format("{} is statically linked: the injector cannot be loaded into it", path);
    if (!path.empty() && programKind(path) == ProgramKind::otherMachine)
        return fmt::format("{} is a 32-bit program: the injector is 64-bit", path);
    if (const std::string obstacle = whyNoFileFits(captureFolder); !obstacle.empty())
        return fmt::format("no capture file can be made in {}: {}", captureFolder.string(), obstacle);
    const bool virtualGpus = getVariable(job.environment, "RANKSCOPE_CLOCK") == "cupti";
    if (!virtualGpus && !SharedLibrary::openFirst({"libcuda.so.1"}, {}).isOpen())
        return "no process of the job used CUDA, NCCL or NVTX, or CUDA refused to start: there is no NVIDIA driver on "
               "this machine (`run --virtual` has virtual GPUs)";
    return "no process of the job used CUDA, NCCL or NVTX, or CUDA refused to start (the job's own messages tell)";
}

// Hosts that share no folder record into one of their own each, and none of them knows of the others'.
void tellOfOtherHosts(const Collected& collected, const std::string& name, const Console& console) {
    console.note(fmt::format(
        "{} of the job's {} are not in {}, and no other host has written into it: either they came to nothing, or "
        "their hosts do not share this folder; then copy what they recorded here, under a name for each host",
        text::countedText(collected.missing, "rank"), collected.ranks + collected.missing, name));
    console.next(fmt::format("rankscope collect {} COPY…", text::shellWord(name)));
}

void collectAndReport(const Recording& recording, const Console& console) {
    if (!recording.collect) {
        console.next(fmt::format("rankscope collect {}", text::shellWord(recording.shownName)));
        return;
    }
    const Collected collected = collectRun(findRun(recording.run.path().string()), console);
    if (collected.recordedNothing) {
        const auto& job = recording.processes.front();
        if (console.isQuiet()) return;  // a wrapped job is heard alone
        console.warning(
            fmt::format("nothing was recorded: {}", whyNothingRecorded(job, recording.run.captureFolder())));
        console.next("rankscope doctor");
        return;
    }
    console.note(fmt::format("{}: {}", recording.shownName, collected.summary));
    if (!collected.warning.empty() && !console.isQuiet()) console.warning(collected.warning);
    if (recording.onSeveralHosts && collected.missing > 0 && recording.run.isOfOneHost())
        return tellOfOtherHosts(collected, recording.shownName, console);
    console.next(fmt::format("rankscope analyze {}", text::shellWord(recording.shownName)));
}

// Reads the devices' health until the job ends; where that cannot be, the job goes on without.
void startHealth(const Recording& recording, HelperProgram& helper) {
    Environment environment = recording.processes.front().environment;
    unsetVariable(environment, "LD_PRELOAD");  // it is no process of the job
    helper.start({{findInstallLayout().health.string(), recording.run.path().string(), std::to_string(getpid()),
                   recording.run.isAlone() ? "alone" : "beside"},
                  environment},
                 false);
}

}  // namespace

ProcessEnd record(const Recording& recording, const Console& console) {
    JobEnd job;
    HeldSignals signals;  // until this process has ended, or has told why the job could not be started
    HelperProgram health, metrics;
    try {
        if (recording.health) startHealth(recording, health);
        if (!recording.metrics.empty()) metrics.start({recording.metrics, currentEnvironment()}, true);
        job = runJob(recording.processes, signals, recording.gracePeriodMs, recording.endWithUs, recording.watch);
    } catch (...) {
        metrics.end();
        health.end();
        recording.run.abandon();
        throw;
    }
    metrics.end();
    health.end();
    const ProcessEnd end = job.firstFailed >= 0 ? job.processes[static_cast<size_t>(job.firstFailed)] : ProcessEnd{};
    try {
        if (recording.run.leave(end, job.stopSignal)) collectAndReport(recording, console);
    } catch (const VerbError& error) {
        console.error(fmt::format("the job has ended, but collecting failed: {}", error.what()), error.hint());
    } catch (const std::exception& error) {
        console.error(fmt::format("the job has ended, but collecting failed: {}", error.what()));
        console.next(fmt::format("rankscope collect {}", text::shellWord(recording.shownName)));
    }
    return end;
}

}  // namespace rankscope::cli
