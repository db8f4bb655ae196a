// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rankscope::text {

/// Text for Prometheus and its like: OpenMetrics 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec/), families
/// in one piece each, # EOF at the end. No two samples of a family may have the same labels.
class Exposition {
  public:
    using Labels = std::vector<std::pair<const char*, std::string>>;

    /// Begins a gauge. `unit`: the last word of the name where it is one, else empty.
    void gauge(const std::string& name, const std::string& unit, const std::string& help);
    /// Begins a counter; its samples are called `name` with "_total" behind it.
    void counter(const std::string& name, const std::string& unit, const std::string& help);
    /// Begins what is 1 and says things by its labels; its sample is called `name` with "_info" behind it.
    void info(const std::string& name, const std::string& help);
    /// What is no finite number is left out. Values of labels are valid UTF-8.
    void sample(const Labels& labels, double value);
    std::string end() &&;

  private:
    void family(const std::string& name, const char* type, const std::string& unit, const std::string& help);

    std::string m_sample, m_text;
};

}  // namespace rankscope::text
