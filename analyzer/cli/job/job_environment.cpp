// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/job_environment.h"

#include <fmt/format.h>

#include "analyzer/cli/console/errors.h"

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

}  // namespace

std::vector<std::string> preparedVariables(const JobSettings& settings) {
    std::vector<std::string> names = {"LD_PRELOAD", "RANKSCOPE_DIR", "RANKSCOPE_TRACE", "RANKSCOPE_MAX_BYTES",
                                      "RANKSCOPE_CAPTURE_RANGE"};
    if (settings.delayS > 0) names.push_back("RANKSCOPE_DELAY_S");
    if (settings.durationS > 0) names.push_back("RANKSCOPE_DURATION_S");
    if (!settings.links.empty()) names.push_back("RANKSCOPE_LINKS");
    if (!settings.tunerRows.empty()) names.push_back("RANKSCOPE_TUNER_ROWS");
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
    prepend(environment, "LD_PRELOAD", layout.injector.string());
    setVariable(environment, "RANKSCOPE_DIR", settings.captureFolder.string());
    setVariable(environment, "RANKSCOPE_TRACE", settings.trace);
    setVariable(environment, "RANKSCOPE_CAPTURE_RANGE", settings.captureRange);
    setVariable(environment, "RANKSCOPE_MAX_BYTES", std::to_string(settings.maxBytes));
    if (settings.delayS > 0) setVariable(environment, "RANKSCOPE_DELAY_S", fmt::format("{}", settings.delayS));
    if (settings.durationS > 0) setVariable(environment, "RANKSCOPE_DURATION_S", fmt::format("{}", settings.durationS));
    if (!settings.links.empty()) setVariable(environment, "RANKSCOPE_LINKS", settings.links);
    if (!settings.tunerRows.empty()) {
        if (!std::filesystem::exists(layout.tuner))
            throw VerbError(kExitInput, fmt::format("the tuner plugin {} is missing", layout.tuner.string()),
                            "build with the CUDA headers present (./bootstrap.sh build)");
        setVariable(environment, "RANKSCOPE_TUNER_ROWS", settings.tunerRows);
    }
    if (!settings.virtualGpus) return environment;

    if (!std::filesystem::exists(layout.vgpu))
        throw VerbError(kExitInput,
                        fmt::format("the virtual GPUs are missing: {} does not exist", layout.vgpu.string()),
                        "build with the CUDA headers present (./bootstrap.sh build)");
    prepend(environment, "LD_LIBRARY_PATH", layout.vgpu.string());
    setVariable(environment, "RANKSCOPE_CLOCK", "cupti");
    setVariable(environment, "RANKSCOPE_SYSFS_ROOT",
                (settings.captureFolder / "sysfs").string());  // the virtual GPUs write it
    if (!settings.virtualJob.empty()) setVariable(environment, "RANKSCOPE_VGPU_JOB", settings.virtualJob);
    if (!settings.scenario.empty()) setVariable(environment, "RANKSCOPE_SCENARIO", settings.scenario);
    // Read by the virtual libnvidia-ml and by what lays out the virtual sysfs: both then know of no link.
    if (settings.hideMachineLinks) setVariable(environment, "RANKSCOPE_VGPU_LINKS", "hidden");
    return environment;
}

}  // namespace rankscope::cli
