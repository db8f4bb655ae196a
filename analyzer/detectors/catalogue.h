// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::analyzer {

struct ThresholdEntry {
    std::string name;
    double value = 0;
    std::string unit;
    std::string reason;
};

/// What `rankscope explain ID` tells.
struct CatalogueEntry {
    std::string id;
    std::string title;
    std::string definition;
    std::vector<ThresholdEntry> thresholds;
    std::string falsePositives;
    std::string fix;
    bool detected = false;  // false: catalogued, not detected yet
};

std::span<const CatalogueEntry> catalogue();
/// Case is ignored; nullptr when there is no such diagnosis.
const CatalogueEntry* findCatalogueEntry(std::string_view id);
/// The entry as plain text.
std::string renderCatalogueEntry(const CatalogueEntry& entry);

}  // namespace rankscope::analyzer
