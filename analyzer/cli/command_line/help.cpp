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
    HelpFormatter(size_t columns, std::function<bool(const CLI::App&)> takesJob)
        : m_columns(columns), m_takesJob(std::move(takesJob)) {
        constexpr size_t kNames = 30;
        column_width(std::min(kNames, columns / 3));
        label("SUBCOMMAND", "VERB");
    }

    std::string make_usage(const CLI::App* app, std::string name) const override {
        std::string usage = Formatter::make_usage(app, std::move(name));
        if (!m_takesJob(*app)) return usage;
        usage.pop_back();  // the line's end
        return usage + " -- COMMAND...\n";
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
    std::function<bool(const CLI::App&)> m_takesJob;
};

}  // namespace

std::shared_ptr<CLI::Formatter> helpFormatter(size_t columns, std::function<bool(const CLI::App&)> takesJob) {
    return std::make_shared<HelpFormatter>(columns, std::move(takesJob));
}

}  // namespace rankscope::cli
