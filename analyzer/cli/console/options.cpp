// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <regex>

#include "analyzer/cli/console/errors.h"
#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/text/lists.h"
#include "collector/store/link_spec.h"

namespace rankscope::cli {
namespace {

constexpr std::string_view kForgottenLinks = "unknown";

// Says what is wrong with link peaks such as "intra:gbps=200,alpha_us=6;inter:gbps=40"; empty when they can be used.
std::string checkLinks(const std::string& text) {
    const store::LinkSpec spec = store::parseLinkSpec(text);
    if (!spec.complaint.empty()) return spec.complaint;
    return spec.intra || spec.inter
               ? std::string()
               : "no link is told: write for example intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18";
}

}  // namespace

void addLinksOption(CLI::App& verb, std::string& links) {
    verb.add_option("--links", links,
                    "Link peaks per rank in 1e9 bytes/s, e.g. intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18; "
                    "left out: RANKSCOPE_LINKS")
        ->type_name("SPEC")
        ->check(checkLinks);
}

void addLinkOptions(CLI::App& verb, LinkOptions& options) {
    verb.add_option("--links", options.links,
                    "Link peaks per rank in 1e9 bytes/s, e.g. intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18; "
                    "left out: RANKSCOPE_LINKS; unknown: as if neither the run nor its machines had told any")
        ->type_name("SPEC")
        ->check([](const std::string& text) { return text == kForgottenLinks ? std::string() : checkLinks(text); });
    addRepeatedOption(
        verb, "--links-table", options.tables, "FILE",
        "Output of nccl-tests on these machines, FILE[:operation]: its plateau is the links' peak; may be repeated");
}

std::string linksOfEnvironment() {
    const char* text = std::getenv("RANKSCOPE_LINKS");
    if (text == nullptr || *text == '\0') return {};
    if (const std::string complaint = checkLinks(text); !complaint.empty())
        throw VerbError(kExitUsage, fmt::format("RANKSCOPE_LINKS: {}", complaint));
    return text;
}

void addTold(const std::string& links, costs::LinkSources& sources) {
    if (!links.empty()) sources.told.push_back({links, "--links"});
    if (const std::string text = linksOfEnvironment(); !text.empty()) sources.told.push_back({text, "RANKSCOPE_LINKS"});
}

costs::LinkSources linkSources(const LinkOptions& options) {
    costs::LinkSources sources;
    sources.forgotten = options.links == kForgottenLinks;
    if (!sources.forgotten) addTold(options.links, sources);
    for (const std::string& text : options.tables) {
        const costs::EvidenceSource source = costs::parseEvidenceSource(text);
        std::ranges::move(costs::readNcclTestsTables(source.path, source.hints), std::back_inserter(sources.tables));
    }
    return sources;
}

CLI::Option* addRepeatedOption(CLI::App& verb, const char* name, std::vector<std::string>& values, const char* type,
                               const std::string& help) {
    return verb.add_option(name, values, help)->type_name(type)->expected(1)->take_all();
}

void addRunOption(CLI::App& verb, std::string& run) {
    verb.add_option("NAME", run, "Run name, run directory or .db file")->required();
}

void addFormatOption(CLI::App& verb, std::string& format, const std::vector<std::string>& formats,
                     const std::string& help) {
    auto* option = verb.add_option("--format", format, help)->check(CLI::IsMember(formats))->capture_default_str();
    if (text::contains(formats, std::string("json")))
        verb.add_flag_callback(
                "--json", [&format] { format = "json"; }, "The same as --format json")
            ->excludes(option);
}

void addOutputOption(CLI::App& verb, std::string& file, const std::string& help) {
    verb.add_option("-o,--output", file, help + "; stdout when left out")->type_name("FILE");
}

std::optional<double> finiteNumber(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return !text.empty() && *end == '\0' && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> secondsOf(const std::string& text) {
    if (text == "off") return 0;
    static const std::regex kForm("([0-9]+(?:\\.[0-9]+)?)(s|m|h)?");
    std::smatch parts;
    if (!std::regex_match(text, parts, kForm)) return std::nullopt;
    const std::optional<double> value = finiteNumber(parts[1]);
    const double seconds = value.value_or(0) * (parts[2] == "h" ? 3600 : parts[2] == "m" ? 60 : 1);
    constexpr double kMost = 1e8;  // three years
    return seconds > 0 && seconds <= kMost ? std::optional(seconds) : std::nullopt;
}

std::string checkTime(const std::string& text) {
    return secondsOf(text) ? "" : fmt::format("'{}' is no time: write for example 90s, 5m or off", text);
}

namespace {

// The injector empties the rings in memory every 0.2 s, and two files of a ring are kept: with less than half of that a
// single round would throw away what it has just written.
constexpr double kShortestRingS = 0.1;

std::string checkRing(const std::string& text) {
    if (std::string complaint = checkTime(text); !complaint.empty()) return complaint;
    const double seconds = *secondsOf(text);
    if (seconds == 0 || seconds >= kShortestRingS) return "";
    return fmt::format(
        "'{}' is too short: what a rank recorded comes into the ring in parts of 0.2 s, so that below "
        "{:g} s each would throw away the one before",
        text, kShortestRingS);
}

}  // namespace

CLI::Option* addLightOption(CLI::App& verb, std::string& light, const std::string& description) {
    return verb.add_flag("--light{calls}", light, description)->check(CLI::IsMember({"calls", "kernels"}));
}

void addRingOption(CLI::App& verb, CLI::Option* light, std::string& ring) {
    verb.add_option("--ring", ring,
                    "With --light: keep full detail of so long (60s, 5m), and of what is older some bytes a call; off: "
                    "full detail of all")
        ->type_name("TIME")
        ->needs(light)
        ->capture_default_str()
        ->check(checkRing);
}

void addShareOption(CLI::App& verb, bool& share) {
    verb.add_flag("--share", share,
                  "Let others read the run, as the umask has it; without it folder and files are yours alone");
}

void addWorkersOption(CLI::App& verb, unsigned& workers) {
    verb.add_option("--workers", workers, "Threads; 0: one per core")->capture_default_str();
}

}  // namespace rankscope::cli
