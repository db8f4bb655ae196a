// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/doctor/privacy.h"

#include <fmt/format.h>

#include <cstdlib>

#include "analyzer/text/masked_command.h"
#include "analyzer/text/plain_text.h"
#include "injector/recordable_names.h"
#include "injector/recordable_variables.h"

namespace rankscope::cli {

std::string privacyText(const std::vector<std::string>& command) {
    std::string set, others;
    for (const std::string_view name : injector::kRecordableNames) {
        const char* value = std::getenv(std::string(name).c_str());
        if (value != nullptr)
            set += fmt::format("  {}={}\n", name, text::oneLine(injector::recordedValue(value).c_str()));
        else
            others += fmt::format("  {}\n", name);
    }
    std::string text =
        "Of the job's environment a recording holds the values of a list of variables and of no others, without the "
        "user and password of any URL in them; `rankscope run --no-environment` records none.\n";
    text += set.empty() ? "None of them is set here.\n" : "A job started here would tell of these:\n" + set;
    text += set.empty() ? "The list:\n" : "The others of the list, which are not set here:\n";
    text += others;
    text +=
        "Of its command it holds every word, but *** for values whose option or variable speaks of a secret "
        "(--password x, --api-key=x, HF_TOKEN=x), for what follows Bearer, and for credentials in URLs.\n";
    if (command.empty()) {
        text += "`rankscope doctor --privacy -- COMMAND` shows what it would hold of a command.\n";
    } else {
        text += "This command would be held as:\n ";
        for (const std::string& word : text::maskedCommand(command)) text += " " + text::oneLine(text::shellWord(word));
        text += "\n";
    }
    return text +
           "It also holds the names of the host, of the program's file, of threads, kernels and NVTX ranges.\n"
           "The folder of a run is its owner's alone; `--share` opens it as the umask has it.\n";
}

}  // namespace rankscope::cli
