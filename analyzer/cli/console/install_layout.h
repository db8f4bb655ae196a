// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace rankscope::cli {

// Tells where the parts of Rankscope lie, relative to the running binary: the build tree and an installed prefix have
// the same layout.
struct InstallLayout {
    std::filesystem::path prefix;
    std::filesystem::path injector;   // lib/rankscope/librankscope_injector.so
    std::filesystem::path tuner;      // lib/rankscope/librankscope_tuner.so; the injector looks for it beside itself
    std::filesystem::path vgpu;       // lib/rankscope/vgpu, a folder to put in front of LD_LIBRARY_PATH
    std::filesystem::path workload;   // libexec/rankscope/rankscope-workload
    std::filesystem::path health;     // libexec/rankscope/rankscope-health
    std::filesystem::path view;       // libexec/rankscope/rankscope-view; missing in builds without Qt 6
    std::filesystem::path scenarios;  // share/rankscope/scenarios
    std::filesystem::path mappings;   // share/rankscope/mappings
    std::filesystem::path frameworkJobs;  // share/rankscope/frameworks/jobs; the scripts lie beside it
    std::filesystem::path frameworks;     // a Python environment: RANKSCOPE_FRAMEWORKS, or frameworks/; may be missing
};

// The running binary.
std::filesystem::path ownProgram();

InstallLayout findInstallLayout();

}  // namespace rankscope::cli
