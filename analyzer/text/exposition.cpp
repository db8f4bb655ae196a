// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/exposition.h"

#include <fmt/format.h>

#include <cmath>

namespace rankscope::text {
namespace {

std::string labelText(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out;
}

}  // namespace

void Exposition::family(const std::string& name, const char* type, const std::string& unit, const std::string& help) {
    m_text += fmt::format("# TYPE {} {}\n", name, type);
    if (!unit.empty()) m_text += fmt::format("# UNIT {} {}\n", name, unit);
    m_text += fmt::format("# HELP {} {}\n", name, help);
}

void Exposition::gauge(const std::string& name, const std::string& unit, const std::string& help) {
    family(name, "gauge", unit, help);
    m_sample = name;
}

void Exposition::counter(const std::string& name, const std::string& unit, const std::string& help) {
    family(name, "counter", unit, help);
    m_sample = name + "_total";
}

void Exposition::info(const std::string& name, const std::string& help) {
    family(name, "info", {}, help);
    m_sample = name + "_info";
}

void Exposition::sample(const Labels& labels, double value) {
    if (!std::isfinite(value)) return;
    m_text += m_sample;
    for (size_t i = 0; i < labels.size(); ++i)
        m_text += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first, labelText(labels[i].second));
    m_text += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
}

std::string Exposition::end() && {
    return std::move(m_text) + "# EOF\n";
}

}  // namespace rankscope::text
