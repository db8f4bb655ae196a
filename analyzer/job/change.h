// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankscope::job {

/// A change of a job, as `rankscope whatif --change` takes it. What it does to the job is the business of
/// analyzer/edits.
struct Change {
    std::string family;  // "buckets"
    /// Keys and values, "mb" and "25". Numbers are rounded for a reader: the change that is made is the one that is
    /// told.
    std::vector<std::pair<std::string, std::string>> arguments{};

    /// "buckets:mb=25,overlap=yes"
    std::string text() const;
    /// The argument's value; empty when it has none of that name.
    std::string_view value(std::string_view key) const;
    /// The same as a number; nothing when it is none.
    std::optional<double> number(std::string_view key) const;

    bool operator==(const Change&) const = default;
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(Change& value, const Visit& visit) {
    auto& [family, arguments] = value;
    visit(family, arguments);
}

/// " --change buckets:mb=25 --change graphs": what `rankscope whatif` is asked with, each quoted for a shell.
std::string asOptions(const std::vector<Change>& changes);

/// "0-3+6": a list of ranks or steps as the value of an argument. `numbers` are sorted.
std::string listText(const std::vector<int>& numbers);

}  // namespace rankscope::job
