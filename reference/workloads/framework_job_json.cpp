// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/framework_job_json.h"

namespace rankscope::reference {
namespace {

using nlohmann::json;

std::string wordOf(const json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

/// An object, so that a repair can change one option: true stands for a flag, false for its absence, a list for several
/// words.
std::vector<std::string> readArguments(const json& arguments, const ObjectReader& reader) {
    if (!arguments.is_object())
        reader.fail("arguments", "must be an object, such as {\"--steps\": 8, \"--overlap\": true}");
    std::vector<std::string> words;
    for (const auto& [name, value] : arguments.items()) {
        if (name.empty() || name[0] != '-')
            reader.fail("arguments", "names '" + name + "': an option begins with a dash");
        if (value == false) continue;
        words.push_back(name);
        if (value.is_array()) {
            for (const json& entry : value) words.push_back(wordOf(entry));
        } else if (value.is_string() || value.is_number()) {
            words.push_back(wordOf(value));
        } else if (value != true) {
            reader.fail("arguments", "has '" + name + "' that is no text, number, truth value or list of them");
        }
    }
    return words;
}

}  // namespace

FrameworkJob readFrameworkJob(ObjectReader reader) {
    FrameworkJob job;
    job.script = reader.text("script", "");
    if (job.script.empty()) reader.fail("script", "is missing: the training script, such as pytorch/ddp_train.py");
    if (const json* arguments = reader.find("arguments")) job.arguments = readArguments(*arguments, reader);
    ObjectReader environment = reader.object("environment");
    if (const json* variables = reader.find("environment"))
        for (const auto& [name, value] : variables->items())
            job.environment.emplace_back(name, environment.text(name.c_str(), ""));
    if (const json* modules = reader.find("modules")) {
        if (!modules->is_array()) reader.fail("modules", "must be a list of Python modules");
        for (const json& module : *modules) {
            if (!module.is_string()) reader.fail("modules", "must be a list of Python modules");
            job.modules.push_back(module.get<std::string>());
        }
    }
    reader.positive("tokens", 1);  // of a step: read by the score alone
    reader.rejectUnknownKeys();
    return job;
}

json summaryOf(const FrameworkJob& job) {
    json summary = {{"script", job.script}, {"arguments", job.arguments}, {"modules", job.modules}};
    summary["environment"] = json::object();
    for (const auto& [name, value] : job.environment) summary["environment"][name] = value;
    return summary;
}

}  // namespace rankscope::reference
