// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/job_environment.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/options.h"

namespace rankscope::cli {
namespace {

void prepend(Environment& environment, const std::string& name, const std::string& value) {
    const std::string former = getVariable(environment, name);
    if (former == value || former.starts_with(value + ":")) return;  // a wrapper inside a wrapper
    setVariable(environment, name, former.empty() ? value : value + ":" + former);
}

void requireInjector(const std::filesystem::path& injector) {
    if (!std::filesystem::exists(injector))
        throw VerbError(kExitInput, fmt::format("the injector {} is missing", injector.string()),
                        "build with the CUDA headers present: without them Rankscope can only import and analyze");
    // The dynamic loader splits LD_PRELOAD at both, and has no escape.
    if (injector.string().find_first_of(": ") != std::string::npos)
        throw VerbError(kExitInput,
                        fmt::format("the path of the injector holds a space or a colon: {}", injector.string()),
                        "install Rankscope under a path without them");
}

// What the injector is told, besides that it is loaded.
std::vector<std::pair<std::string, std::string>> injectorVariables(const JobSettings& settings) {
    const RecordingOptions& options = settings.recording;
    std::vector<std::pair<std::string, std::string>> variables = {
        {"RANKSCOPE_DIR", settings.captureFolder.string()},
        {"RANKSCOPE_TRACE", options.trace},
        {"RANKSCOPE_MAX_BYTES", std::to_string(options.maxBytes)},
        {"RANKSCOPE_CAPTURE_RANGE", options.captureRange}};
    // When a collective was on the device, from the plugin's kernel channels.
    if (options.isLight()) variables.emplace_back("RANKSCOPE_NCCL_CHANNELS", "spans");
    if (const double ringS = options.isLight() ? *secondsOf(options.ring) : 0; ringS > 0)
        variables.emplace_back("RANKSCOPE_RING_S", fmt::format("{:.9f}", ringS));
    if (options.sumsKernels()) variables.emplace_back("RANKSCOPE_KERNELS", "summaries");
    if (options.isLight() && options.slowStep > 0)
        variables.emplace_back("RANKSCOPE_SLOW_STEP", fmt::format("{:.3f}", options.slowStep));
    if (options.delayS > 0) variables.emplace_back("RANKSCOPE_DELAY_S", fmt::format("{}", options.delayS));
    if (options.durationS > 0) variables.emplace_back("RANKSCOPE_DURATION_S", fmt::format("{}", options.durationS));
    if (settings.noEnvironment) variables.emplace_back("RANKSCOPE_ENVIRONMENT", "off");
    if (!settings.links.empty()) variables.emplace_back("RANKSCOPE_LINKS", settings.links);
    if (!settings.tunerRows.empty()) variables.emplace_back("RANKSCOPE_TUNER_ROWS", settings.tunerRows);
    return variables;
}

// Throws VerbError when a part of the installation is not there.
void requirePart(const std::filesystem::path& part, std::string_view complaint) {
    if (!std::filesystem::exists(part))
        throw VerbError(kExitInput, fmt::format(fmt::runtime(complaint), part.string()),
                        "build with the CUDA headers present (./bootstrap.sh build)");
}

// What stands in LD_PRELOAD. The virtual libraries are named by their paths: whatever a program's RPATH leads to is
// then not looked for, since their sonames are taken, and a process whose LD_LIBRARY_PATH somebody changed has them
// still.
std::string preloaded(const InstallLayout& layout, bool virtualGpus) {
    std::string list = layout.injector.string();
    if (!virtualGpus) return list;
    requirePart(layout.vgpu / "preload", "the virtual GPUs are missing: {} does not exist");
    std::vector<std::filesystem::path> libraries;
    for (const auto& entry : std::filesystem::directory_iterator(layout.vgpu / "preload"))
        if (entry.path().extension() == ".so") libraries.push_back(entry.path());
    std::ranges::sort(libraries);
    // First the one that the others need: it stands in front of calls of libc, and must be found before that.
    list += ":" + (layout.vgpu / "librankscope_vgpu.so").string();
    for (const auto& library : libraries) list += ":" + library.string();
    return list;
}

}  // namespace

std::vector<std::string> preparedVariables(const JobSettings& settings) {
    std::vector<std::string> names = {"LD_PRELOAD"};
    for (const auto& [name, value] : injectorVariables(settings)) names.push_back(name);
    return names;
}

void setVariables(Environment& environment, const std::vector<std::string>& assignments) {
    for (const auto& variable : assignments) {
        const size_t equals = variable.find('=');
        if (equals == std::string::npos || equals == 0)
            throw VerbError(kExitUsage, fmt::format("--env {}: write NAME=VALUE", variable));
        setVariable(environment, variable.substr(0, equals), variable.substr(equals + 1));
    }
}

Environment prepareEnvironment(const InstallLayout& layout, const JobSettings& settings) {
    requireInjector(layout.injector);
    Environment environment = currentEnvironment();
    setVariables(environment, settings.extra);
    prepend(environment, "LD_PRELOAD", preloaded(layout, settings.virtualGpus));
    for (const auto& [name, value] : injectorVariables(settings)) setVariable(environment, name, value);
    if (!settings.tunerRows.empty()) requirePart(layout.tuner, "the tuner plugin {} is missing");
    if (!settings.virtualGpus) return environment;

    prepend(environment, "LD_LIBRARY_PATH", layout.vgpu.string());
    setVariable(environment, "RANKSCOPE_CLOCK", "cupti");
    setVariable(environment, "RANKSCOPE_SYSFS_ROOT",
                (settings.captureFolder / "sysfs").string());  // the virtual GPUs write it
    if (!settings.virtualJob.empty()) setVariable(environment, "RANKSCOPE_VGPU_JOB", settings.virtualJob);
    if (!settings.scenario.empty()) setVariable(environment, "RANKSCOPE_SCENARIO", settings.scenario);
    // torch.compile by worker processes: they are waited for at the job's end, at a real clock, for five minutes. What
    // it compiles costs no virtual time either way.
    const std::string workers = "TORCHINDUCTOR_COMPILE_THREADS";
    if (getVariable(environment, workers).empty()) setVariable(environment, workers, "1");
    // Read by the virtual libnvidia-ml and by what lays out the virtual sysfs: both then know of no link.
    if (settings.hideMachineLinks) setVariable(environment, "RANKSCOPE_VGPU_LINKS", "hidden");
    return environment;
}

}  // namespace rankscope::cli
