// SPDX-License-Identifier: Apache-2.0
// Options that several verbs take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/costs/link_peaks.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rankscope::cli {

// Holds what a verb is told of the links.
struct LinkOptions {
    std::string links;                // --links
    std::vector<std::string> tables;  // --links-table, as parseEvidenceSource takes it
};

// --links alone, for verbs that store it.
void addLinksOption(CLI::App& verb, std::string& links);

// --links and --links-table, for verbs that analyse.
void addLinkOptions(CLI::App& verb, LinkOptions& options);

// RANKSCOPE_LINKS; empty when it is not set. Throws VerbError (exit code 2) for one that cannot be used.
std::string linksOfEnvironment();

// --links, then RANKSCOPE_LINKS, and the tables. Throws VerbError and store::Error.
costs::LinkSources linkSources(const LinkOptions& options);

// An option that may be given several times, one value each time.
CLI::Option* addRepeatedOption(CLI::App& verb, const char* name, std::vector<std::string>& values, const char* type,
                               const std::string& help);

// NAME, which must be given: the run that the verb is about.
void addRunOption(CLI::App& verb, std::string& run);

// --format, one of `formats`; the present value is the default.
void addFormatOption(CLI::App& verb, std::string& format, const std::vector<std::string>& formats,
                     const std::string& help);

// -o, --output: a file for what would go to stdout.
void addOutputOption(CLI::App& verb, std::string& file, const std::string& help);

// Reads a number that is finite and has nothing behind it; nothing for any other text.
std::optional<double> finiteNumber(const std::string& text);

inline constexpr double kNsPerS = 1e9;

// "5m", "90s", "300", "1h", in seconds; 0 for "off"; nothing for what is no time.
std::optional<double> secondsOf(const std::string& text);

// --light, which leaves "calls", and --light=kernels.
CLI::Option* addLightOption(CLI::App& verb, std::string& light, const std::string& description);

// --ring TIME; behind --light. Told by the option: by name CLI11 (2.1) looks it up in a function that is noexcept and
// allocates, where memory that ends would abort.
void addRingOption(CLI::App& verb, CLI::Option* light, std::string& ring);

// What speaks against such a text, as an option's check; empty: nothing.
std::string checkTime(const std::string& text);

// --share: others may read the run that is made.
void addShareOption(CLI::App& verb, bool& share);

void addWorkersOption(CLI::App& verb, unsigned& workers);

}  // namespace rankscope::cli
