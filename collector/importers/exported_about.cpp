// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/exported_about.h"

#include <simdjson.h>

#include <charconv>

#include "collector/importers/import_error.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/row_values.h"

namespace rankscope::collector {

namespace {

using simdjson::dom::element;

/// Names of kernels that CUTLASS makes have 10 KB, the longest that were seen.
constexpr size_t kMostSymbolBytes = 16384;

/// Rows of a table; those that cannot be are left out.
template <typename Row>
void readRows(element about, std::vector<Row>& rows) {
    simdjson::dom::array told;
    if (about[store::Table<Row>::kName].get(told) != simdjson::SUCCESS) return;
    for (const element one : told) {
        Row row;
        const bool good = one.is_object() && setColumns(row, [&](const char* name) -> std::optional<ToldValue> {
                              element value;
                              if (one[name].get(value) != simdjson::SUCCESS) return std::nullopt;
                              ToldValue result;
                              int64_t number = 0;
                              std::string_view text;
                              if (value.get(number) == simdjson::SUCCESS) result.number = number;
                              if (value.get(text) == simdjson::SUCCESS) result.text = text;
                              return result;
                          });
        if (good) rows.push_back(std::move(row));
    }
}

}  // namespace

ExportedAbout readExportedAbout(const std::filesystem::path& file, std::string_view text) {
    simdjson::dom::parser parser;
    element about;
    std::string_view tool;
    if (parser.parse(text.data(), text.size()).get(about) != simdjson::SUCCESS ||
        about["tool"].get(tool) != simdjson::SUCCESS || tool != "rankscope")
        throw ImportError(file, 0, "what an export of Rankscope tells of its run cannot be read",
                          "export the run again");
    ExportedAbout result;
    simdjson::dom::object meta, symbols;
    if (about["meta"].get(meta) != simdjson::SUCCESS)
        throw ImportError(file, 0, "this is an export of an older version of Rankscope, which told less than the run",
                          "export the run again: rankscope export NAME --to perfetto -o FILE");
    for (const auto& [key, value] : meta) {
        std::string_view told;
        if (value.get(told) == simdjson::SUCCESS) result.meta.emplace(key, told);
    }
    readRows(about, result.hosts);
    readRows(about, result.processes);
    readRows(about, result.ranks);
    readRows(about, result.devices);
    readRows(about, result.machineLinks);
    readRows(about, result.threads);
    readRows(about, result.streams);
    readRows(about, result.communicators);
    readRows(about, result.members);
    readRows(about, result.failedAllocations);
    readRows(about, result.losses);
    readRows(about, result.sources);
    if (about["symbols"].get(symbols) == simdjson::SUCCESS)
        for (const auto& [key, value] : symbols) {
            int64_t id = 0;
            std::string_view name;
            if (std::from_chars(key.data(), key.data() + key.size(), id).ec == std::errc() &&
                value.get(name) == simdjson::SUCCESS) {
                result.cutSymbols += name.size() > kMostSymbolBytes;
                result.symbols.emplace(id, firstBytes(name, kMostSymbolBytes));
            }
        }
    return result;
}

}  // namespace rankscope::collector
