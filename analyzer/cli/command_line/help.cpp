// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/command_line/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "analyzer/text/terminal_text.h"

namespace rankscope::cli {
namespace {

class HelpFormatter : public CLI::Formatter {
  public:
    HelpFormatter(size_t columns, std::function<std::string(const CLI::App&)> jobWords)
        : m_columns(columns), m_jobWords(std::move(jobWords)) {
        // As wide as most options with their values are ("  --capture-range RANGE [none]"); what is longer has its
        // meaning on the next line. A narrow terminal keeps two thirds for the meanings.
        constexpr size_t kMostForNames = 30;
        column_width(std::min(kMostForNames, columns / 3));
        label("SUBCOMMAND", "VERB");
    }

    std::string make_usage(const CLI::App* app, std::string name) const override {
        std::string usage = Formatter::make_usage(app, std::move(name));
        const std::string job = m_jobWords(*app);
        if (job.empty()) return usage;
        usage.pop_back();  // the line's end
        return usage + " " + job + "\n";
    }

    std::string make_description(const CLI::App* app) const override {
        return text::wrapped(app->get_description(), {}, m_columns);
    }

    std::string make_option(const CLI::Option* option, bool isPositional) const override {
        return entry(make_option_name(option, isPositional) + make_option_opts(option), make_option_desc(option));
    }

    std::string make_subcommand(const CLI::App* verb) const override {
        return entry(verb->get_name(), verb->get_description());
    }

  private:
    // A name with what it means beside it, or below where it is long.
    std::string entry(const std::string& name, const std::string& meaning) const {
        const std::string left = "  " + name;
        const bool fits = left.size() + 2 <= get_column_width();
        if (meaning.empty()) return left + "\n";
        return (fits ? "" : left + "\n") +
               text::wrapped(meaning, fmt::format("{:<{}}", fits ? left : "", get_column_width()), m_columns);
    }

    size_t m_columns;
    std::function<std::string(const CLI::App&)> m_jobWords;
};

}  // namespace

std::shared_ptr<CLI::Formatter> helpFormatter(size_t columns, std::function<std::string(const CLI::App&)> jobWords) {
    return std::make_shared<HelpFormatter>(columns, std::move(jobWords));
}

}  // namespace rankscope::cli
