// SPDX-License-Identifier: Apache-2.0
// rankscope-expand-jobs FOLDER TABLE.json…: writes the scenario files that tables of framework jobs describe. A table
// holds a healthy `job` and `variants` of it; a variant is what differs: `with` is merged over the job (RFC 7386), and
// what repairs it, unless it says so itself by `fixed`, is the job as it was.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The patch that undoes `patch` on what it was merged over.
json inverseOf(const json& patch, const json& original) {
    json inverse = json::object();
    for (const auto& [key, value] : patch.items()) {
        const auto former = original.find(key);
        if (former == original.end())
            inverse[key] = nullptr;
        else if (value.is_object() && former->is_object())
            inverse[key] = inverseOf(value, *former);
        else
            inverse[key] = *former;
    }
    return inverse;
}

json scenarioOf(const json& job, const json& variant, const std::string& name) {
    json scenario = job;
    const json with = variant.value("with", json::object());
    scenario.merge_patch(with);
    scenario["name"] = name;
    scenario["description"] = variant.at("description");
    for (const char* key : {"expect", "allow"}) scenario[key] = variant.value(key, json::array());
    if (variant.contains("fixed"))
        scenario["fixed"] = variant["fixed"];
    else if (!with.empty())
        scenario["fixed"] = inverseOf(with, job);
    for (const auto& [key, value] : variant.items())
        if (key != "description" && key != "with" && key != "expect" && key != "allow" && key != "fixed")
            throw std::runtime_error("the variant " + name + " has the key '" + key + "', which nobody reads");
    return scenario;
}

void expand(const fs::path& table, const fs::path& folder) {
    std::ifstream file(table);
    if (!file) throw std::runtime_error("cannot be read");
    const json document = json::parse(file);
    for (const auto& [suffix, variant] : document.at("variants").items()) {
        const std::string name = table.stem().string() + "-" + suffix;
        std::ofstream output(folder / (name + ".json"));
        output << scenarioOf(document.at("job"), variant, name).dump(1) << "\n";
        if (!output.flush()) throw std::runtime_error("cannot write " + name + ".json");
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        fputs("Usage: rankscope-expand-jobs FOLDER TABLE.json…\n", stderr);
        return 2;
    }
    const char* current = argv[1];
    try {
        // What a table no longer has must not stay.
        fs::remove_all(argv[1]);
        fs::create_directories(argv[1]);
        for (int i = 2; i < argc; ++i) {
            current = argv[i];
            expand(argv[i], argv[1]);
        }
    } catch (const std::exception& error) {
        fprintf(stderr, "rankscope-expand-jobs: %s: %s\n", current, error.what());
        return 1;
    }
    return 0;
}
