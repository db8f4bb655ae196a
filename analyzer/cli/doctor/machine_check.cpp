// SPDX-License-Identifier: Apache-2.0
// `doctor` must run on machines without CUDA, so it declares the few functions it asks by hand: all take and return
// plain C types.
#include "analyzer/cli/doctor/machine_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string_view>
#include <tuple>

#include "analyzer/cli/console/shared_library.h"
#include "analyzer/cli/job/job_process.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"
#include "injector/machine/device_links.h"
#include "injector/machine/host_ports.h"

namespace rankscope::cli {
namespace {

using capture::LinkKind;
using machine::Link;

std::string peakText(const Link& link, const char* of) {
    return link.bytesPerS > 0 ? fmt::format("{}{}", text::bandwidthText(static_cast<double>(link.bytesPerS)), of)
                              : "speed unknown";
}

std::string deviceLinkText(const Link& link) {
    std::string text;
    if (link.kind == LinkKind::nvlink)
        text = text::countedText(link.count, "NVLink") +
               (link.generation ? fmt::format(" of version {}", link.generation) : "");
    else
        text = fmt::format("PCIe{} x{}", link.generation ? fmt::format(" {}.0", link.generation) : "", link.count);
    return text + ", " + peakText(link, link.kind == LinkKind::nvlink && link.count > 1 ? " together" : "");
}

bool isVirtualRun() {
    const char* clock = std::getenv("RANKSCOPE_CLOCK");
    return clock && std::string_view(clock) == "cupti";
}

constexpr const char* kNotBuilt = " is missing: Rankscope was built without the CUDA headers";

std::vector<std::string> cudaFolders() {
    std::vector<std::string> folders;
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
        if (const char* root = std::getenv(variable); root && *root)
            for (const char* below : {"/lib64", "/lib", "/extras/CUPTI/lib64"})
                folders.push_back(std::string(root) + below);
    for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64"})
        folders.push_back(folder);
    return folders;
}

MachineCheck checkInjector(const InstallLayout& layout) {
    const std::string path = layout.injector.string();
    if (access(path.c_str(), R_OK) != 0)
        return {"injector", false, path + kNotBuilt, "nothing can be recorded; import and analyze work"};
    if (path.find_first_of(": ") != std::string::npos)
        return {"injector", false, path + " has a space or a colon in its path, which LD_PRELOAD cannot hold",
                "nothing can be recorded from this place"};
    return {"injector", true, path};
}

MachineCheck checkVirtualGpus(const InstallLayout& layout) {
    const std::string path = layout.vgpu.string();
    if (access((layout.vgpu / "libcudart.so.13").c_str(), R_OK) == 0) return {"virtual GPUs", true, path};
    return {"virtual GPUs", false, path + kNotBuilt, "`run --virtual` and the reference jobs do not work"};
}

MachineCheck checkDriver() {
    const char* cost = "jobs on this machine cannot use a GPU; virtual GPUs and analysis work";
    const auto library = SharedLibrary::openFirst({"libcuda.so.1"}, {});
    if (!library.isOpen())
        return {"driver", false, "libcuda.so.1 cannot be loaded: no NVIDIA driver on this machine", cost};
    auto* init = library.find<int(unsigned)>("cuInit");
    auto* version = library.find<int(int*)>("cuDriverGetVersion");
    const int status = init ? init(0) : -1;
    if (status != 0)
        return {"driver", false, fmt::format("{} is there, but cuInit returned {}", library.path(), status), cost};
    int number = 0;
    if (version) version(&number);
    return {"driver", true, fmt::format("supports CUDA {}.{}", number / 1000, number % 1000 / 10)};
}

MachineCheck checkDevices() {
    const auto library = SharedLibrary::openFirst({"libcuda.so.1"}, {});
    auto* init = library.find<int(unsigned)>("cuInit");
    auto* count = library.find<int(int*)>("cuDeviceGetCount");
    auto* name = library.find<int(char*, int, int)>("cuDeviceGetName");
    int devices = 0;
    if (!init || !count || !name || init(0) != 0 || count(&devices) != 0 || devices == 0)
        return {"devices", false, "none", "no kernels or copies to record here"};
    std::vector<std::string> found;
    for (int i = 0; i < devices; ++i) {
        char text[128] = {};
        name(text, sizeof text - 1, i);
        found.push_back(fmt::format("{}: {}", i, text));
    }
    return {"devices", true, text::joined(found)};
}

MachineCheck checkCupti() {
    const char* cost = "no kernel and copy times; NCCL calls and NVTX ranges are still recorded";
    const auto library = SharedLibrary::openFirst(
        {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"}, cudaFolders());
    auto* version = library.find<int(uint32_t*)>("cuptiGetVersion");
    if (!version)
        return {"CUPTI", false,
                "libcupti.so is not found on the loader's path or below the CUDA folder (a job that brings its own, as "
                "PyTorch does, has it)",
                cost};
    uint32_t number = 0;
    if (const int status = version(&number); status != 0)
        return {"CUPTI", false, fmt::format("{}: cuptiGetVersion returned {}", library.path(), status), cost};
    return {"CUPTI", true, fmt::format("version {} ({})", number, library.path())};
}

MachineCheck checkNccl() {
    const auto library = SharedLibrary::openFirst({"libnccl.so.2"}, cudaFolders());
    auto* version = library.find<int(int*)>("ncclGetVersion");
    int number = 0;
    if (!version || version(&number) != 0)
        return {
            "NCCL", false, "libnccl.so.2 is not found on the loader's path",
            "nothing if the job brings its own NCCL, as PyTorch does; without any there are no collectives to record"};
    return {"NCCL", true,
            fmt::format("version {}.{}.{} ({})", number / 10000, number % 10000 / 100, number % 100, library.path())};
}

/// `found`: what is said of each link; empty where there is none, which is `unknown` then.
MachineCheck linkCheck(const char* name, const machine::LinkList& links, const std::vector<std::string>& found,
                       const char* unknown, const char* cost) {
    const bool known = std::ranges::any_of(links, [](const Link& link) { return link.bytesPerS > 0; });
    return {name, known, found.empty() ? unknown : text::joined(found, "; "), known ? "" : cost};
}

MachineCheck checkGpuLinks() {
    const char* cost = "peaks between GPUs of this machine are not read from it";
    machine::Nvml nvml;
    if (!machine::loadNvml(nvml))
        return {"GPU links", false,
                "unknown: libnvidia-ml.so.1 cannot be loaded (in a container: the driver capability 'utility')", cost};
    machine::LinkList links;
    machine::addLinksOfAllDevices(nvml, links);
    std::map<int32_t, std::string> byDevice;
    for (const Link& link : links)
        byDevice[link.device] += (byDevice.contains(link.device) ? "; " : "") + deviceLinkText(link);
    std::map<std::string, std::vector<int32_t>> alike;
    for (const auto& [device, text] : byDevice) alike[text].push_back(device);
    std::vector<std::string> found;
    for (const auto& [text, devices] : alike) found.push_back(text::rangesText(devices) + ": " + text);
    return linkCheck("GPU links", links, found, "unknown: NVML tells of no device", cost);
}

MachineCheck checkNetworkLinks() {
    machine::LinkList links;
    if (const char* sysfs = machine::sysfsRoot(isVirtualRun())) machine::addHostPorts(sysfs, links);
    std::map<std::tuple<LinkKind, int64_t>, std::vector<std::string>> alike;
    for (const Link& link : links) alike[{link.kind, -link.bytesPerS}].push_back(link.name);
    std::vector<std::string> found;
    for (auto& [key, names] : alike) {
        std::ranges::sort(names);
        Link link;
        link.bytesPerS = -std::get<1>(key);
        found.push_back(fmt::format("{}: {}, {}", text::joined(names),
                                    std::get<0>(key) == LinkKind::infiniband ? "InfiniBand" : "Ethernet",
                                    peakText(link, names.size() > 1 ? " each" : "")));
    }
    return linkCheck("network links", links, found,
                     "unknown: no adapter that is up in /sys/class/infiniband or /sys/class/net (a virtual machine or "
                     "container may hide them)",
                     "peaks between machines are not read from this one");
}

MachineCheck checkPermission() {
    std::ifstream parameters("/proc/driver/nvidia/params");
    std::string line;
    while (std::getline(parameters, line))
        if (line == "RmProfilingAdminOnly: 1" && geteuid() != 0)
            return {"permission", true,
                    "activity records need none; hardware counters are for root only here (RmProfilingAdminOnly), "
                    "which Rankscope does not read"};
    return {"permission", true, "activity records need none"};
}

// Variables by which another profiler takes the place that ours would have in the job.
MachineCheck checkOtherProfilers() {
    std::vector<std::string_view> found;
    for (char** entry = environ; *entry; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        const bool known = name.starts_with("NSYS_") || name == "CUDA_INJECTION64_PATH" ||
                           name == "NVTX_INJECTION64_PATH" || name == "NCCL_PROFILER_PLUGIN";
        if (known) found.push_back(name);
    }
    if (found.empty()) return {"other profilers", true, "none in the environment"};
    return {"other profilers", false, text::joined(found) + " set",
            "what the other tool holds is left to it: CUPTI and NVTX serve one tool at a time; an NCCL plugin is "
            "chained"};
}

MachineCheck checkLaunchers() {
    const Environment environment = currentEnvironment();
    std::vector<std::string> found;
    for (const char* launcher : {"torchrun", "mpirun", "srun"})
        if (const auto path = findCommand(launcher, environment); !path.empty()) found.push_back(path);
    if (!found.empty()) return {"launchers", true, text::joined(found)};
    return {"launchers", false, "neither torchrun nor mpirun nor srun is in PATH",
            "any other way to start the ranks can be wrapped as well"};
}

}  // namespace

std::vector<MachineCheck> checkMachine(const InstallLayout& layout) {
    return {checkInjector(layout), checkVirtualGpus(layout), checkDriver(),   checkDevices(),
            checkGpuLinks(),       checkNetworkLinks(),      checkCupti(),    checkNccl(),
            checkPermission(),     checkOtherProfilers(),    checkLaunchers()};
}

}  // namespace rankscope::cli
