// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/nothing_recorded.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "analyzer/cli/console/shared_library.h"

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

// Why a process of the job could not make its capture file and ring; empty when there is no obstacle now.
std::string whyNoFileFits(const std::filesystem::path& folder) {
    constexpr off_t kSmallestRecording = 1 << 20;
    const std::string probe = (folder / ".probe").string();
    const int descriptor = open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) return std::strerror(errno);
    const int cause = posix_fallocate(descriptor, 0, kSmallestRecording);
    close(descriptor);
    unlink(probe.c_str());
    return cause == 0 || cause == EOPNOTSUPP || cause == EINVAL ? std::string() : std::strerror(cause);
}

}  // namespace

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

}  // namespace rankscope::cli
