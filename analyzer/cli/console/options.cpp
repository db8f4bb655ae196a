// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "analyzer/cli/console/errors.h"
#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/recommend/recommend.h"
#include "collector/store/link_spec.h"

namespace rankscope::cli {

std::string checkLinks(const std::string& text) {
    const store::LinkSpec spec = store::parseLinkSpec(text);
    if (!spec.complaint.empty()) return spec.complaint;
    return spec.intra || spec.inter
               ? std::string()
               : "no link is told: write for example intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18";
}

void addLinksOption(CLI::App& verb, std::string& links) {
    verb.add_option("--links", links,
                    "Link peaks per rank in 1e9 bytes/s, e.g. intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18; "
                    "left out: RANKSCOPE_LINKS")
        ->type_name("SPEC")
        ->check(checkLinks);
}

void addLinkOptions(CLI::App& verb, LinkOptions& options) {
    addLinksOption(verb, options.links);
    verb.add_option(
            "--links-table", options.tables,
            "Output of nccl-tests on these machines, FILE[:operation]: its plateau is the links' peak; may be repeated")
        ->type_name("FILE")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::string linksOfEnvironment() {
    const char* text = std::getenv("RANKSCOPE_LINKS");
    if (text == nullptr || *text == '\0') return {};
    if (const std::string complaint = checkLinks(text); !complaint.empty())
        throw VerbError(kExitUsage, fmt::format("RANKSCOPE_LINKS: {}", complaint));
    return text;
}

costs::LinkSources linkSources(const LinkOptions& options) {
    costs::LinkSources sources;
    if (!options.links.empty()) sources.told.push_back({options.links, "--links"});
    if (const std::string text = linksOfEnvironment(); !text.empty()) sources.told.push_back({text, "RANKSCOPE_LINKS"});
    for (const std::string& text : options.tables) {
        const costs::EvidenceSource source = costs::parseEvidenceSource(text);
        recommend::addMeasuredLinks(costs::readNcclTestsTables(source.path, source.hints), sources);
    }
    return sources;
}

void addRunOption(CLI::App& verb, std::string& run) {
    verb.add_option("NAME", run, "Run name, run directory or .db file")->required();
}

void addFormatOption(CLI::App& verb, std::string& format, const std::vector<std::string>& formats,
                     const std::string& help) {
    verb.add_option("--format", format, help)->check(CLI::IsMember(formats))->capture_default_str();
}

void addOutputOption(CLI::App& verb, std::string& file, const std::string& help) {
    verb.add_option("-o,--output", file, help + "; stdout when left out")->type_name("FILE");
}

void addWorkersOption(CLI::App& verb, unsigned& workers) {
    verb.add_option("--workers", workers, "Threads; 0: one per core")->capture_default_str();
}

}  // namespace rankscope::cli
