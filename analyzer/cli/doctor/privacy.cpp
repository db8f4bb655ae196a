// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/doctor/privacy.h"

#include <fmt/format.h>

#include "injector/recordable_names.h"

namespace rankscope::cli {

std::string privacyText() {
    std::string text =
        "Of the job's environment a recording holds the values of these variables and of no others, without the user "
        "and password of any URL in them:\n";
    for (const std::string_view name : injector::kRecordableNames) text += fmt::format("  {}\n", name);
    return text +
           "Of its command it holds every word, but *** for values whose option or variable speaks of a secret "
           "(--password x, --api-key=x, HF_TOKEN=x), for what follows Bearer, and for credentials in URLs.\n"
           "It also holds the names of the host, of the program's file, of threads, kernels and NVTX ranges.\n";
}

}  // namespace rankscope::cli
