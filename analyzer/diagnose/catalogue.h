// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::diagnose {

struct ThresholdEntry {
    std::string name;
    double value = 0;
    std::string unit;
    std::string reason;
};

/// Where a cure is made that no setting is.
enum class CureAt : uint8_t {
    program,  // what the job does, and its input
    machine,  // hardware, or which of it the ranks are on
};

/// What `rankscope explain ID` tells, and what else is common to all findings of a kind.
struct CatalogueEntry {
    std::string id;
    std::string title;
    std::string definition;
    std::vector<ThresholdEntry> thresholds;
    std::string falsePositives;
    std::string fix;
    bool detected = false;  // false: catalogued, not detected yet
    CureAt cureAt = CureAt::program;
    bool hasSettings = false;    // a setting can cure it: there may be advice on it
    bool judgedByCost = true;    // what saves too little is a note; false: there is another measure for it
    bool noteByCostOnly = true;  // a note is one for its small cost, so that a replay that sees a larger one makes it a
                                 // finding; false: for other reasons, too
};

std::span<const CatalogueEntry> catalogue();
/// Case is ignored; nullptr when there is no such diagnosis.
const CatalogueEntry* findCatalogueEntry(std::string_view id);
/// The entry as plain text.
std::string renderCatalogueEntry(const CatalogueEntry& entry);

}  // namespace rankscope::diagnose
