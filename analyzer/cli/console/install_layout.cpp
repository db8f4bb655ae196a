// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/install_layout.h"

#include <cstdlib>

namespace rankscope::cli {

std::filesystem::path ownProgram() {
    return std::filesystem::read_symlink("/proc/self/exe");
}

InstallLayout findInstallLayout() {
    InstallLayout layout;
    layout.prefix = ownProgram().parent_path().parent_path();
    layout.injector = layout.prefix / "lib/rankscope/librankscope_injector.so";
    layout.tuner = layout.prefix / "lib/rankscope/librankscope_tuner.so";
    layout.vgpu = layout.prefix / "lib/rankscope/vgpu";
    layout.workload = layout.prefix / "libexec/rankscope/rankscope-workload";
    layout.health = layout.prefix / "libexec/rankscope/rankscope-health";
    layout.view = layout.prefix / "libexec/rankscope/rankscope-view";
    layout.scenarios = layout.prefix / "share/rankscope/scenarios";
    layout.mappings = layout.prefix / "share/rankscope/mappings";
    layout.frameworkJobs = layout.prefix / "share/rankscope/frameworks/jobs";
    const char* frameworks = std::getenv("RANKSCOPE_FRAMEWORKS");
    layout.frameworks = frameworks && *frameworks ? std::filesystem::path(frameworks) : layout.prefix / "frameworks";
    return layout;
}

}  // namespace rankscope::cli
