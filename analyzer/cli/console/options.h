// SPDX-License-Identifier: Apache-2.0
// Options that several verbs take.
#pragma once

#include <string>
#include <vector>

#include "analyzer/costs/link_peaks.h"

namespace CLI {
class App;
}

namespace rankscope::cli {

// Holds what a verb is told of the links.
struct LinkOptions {
    std::string links;                // --links
    std::vector<std::string> tables;  // --links-table, as parseEvidenceSource takes it
};

// Says what is wrong with link peaks such as "intra:gbps=200,alpha_us=6;inter:gbps=40"; empty when they can be used.
std::string checkLinks(const std::string& text);

// --links alone, for verbs that store it.
void addLinksOption(CLI::App& verb, std::string& links);

// --links and --links-table, for verbs that analyse.
void addLinkOptions(CLI::App& verb, LinkOptions& options);

// RANKSCOPE_LINKS; empty when it is not set. Throws VerbError (exit code 2) for one that cannot be used.
std::string linksOfEnvironment();

// --links, then RANKSCOPE_LINKS, and the tables. Throws VerbError and store::Error.
costs::LinkSources linkSources(const LinkOptions& options);

// NAME, which must be given: the run that the verb is about.
void addRunOption(CLI::App& verb, std::string& run);

// --format, one of `formats`; the present value is the default.
void addFormatOption(CLI::App& verb, std::string& format, const std::vector<std::string>& formats,
                     const std::string& help);

// -o, --output: a file for what would go to stdout.
void addOutputOption(CLI::App& verb, std::string& file, const std::string& help);

void addWorkersOption(CLI::App& verb, unsigned& workers);

}  // namespace rankscope::cli
