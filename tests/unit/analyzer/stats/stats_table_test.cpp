// SPDX-License-Identifier: Apache-2.0
#include "analyzer/stats/stats_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace rankscope::stats {
namespace {

const std::vector<StatsTable> kTables{
    {"kernels",
     "GPU kernels",
     {"count", "sum_ns", "share", "name"},
     {{int64_t{12}, int64_t{3'400'000}, 0.25, std::string("=gemm, \"tiled\"")},
      {int64_t{1}, int64_t{900}, 0.0001,
       std::string("a very long name of a kernel that no line of eighty has room for")}},
     3},
    {"copies", "Copies", {"count"}, {}},
    {"overlap", "Overlap", {"rank", "pctg"}, {{int64_t{0}, std::monostate{}}}}};

TEST(StatsTable, PeopleReadUnitsAndNamesThatFit) {
    std::ostringstream out;
    writeText(kTables, 60, out);
    const std::string text = out.str();
    EXPECT_NE(text.find("12 3.40 ms 25.0 % =gemm"), std::string::npos) << text;
    EXPECT_NE(text.find("and 3 more (--top 0 lists all)"), std::string::npos) << text;
    EXPECT_EQ(text.find("Copies"), std::string::npos) << "nothing was copied";
    EXPECT_NE(text.find("unknown"), std::string::npos);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 64u) << line;
}

TEST(StatsTable, TheLongestNamesAreTheOnesThatAreShortened) {
    std::ostringstream out;
    writeText({{"kernel_breakdown",
                "Kernels",
                {"name", "type", "count"},
                {{std::string(900, 'x'), std::string("COMPUTATION"), int64_t{7}}}}},
              60, out);
    EXPECT_NE(out.str().find("7 COMPUTATION xxx"), std::string::npos) << out.str();
    std::istringstream lines(out.str());
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 64u) << line;
}

TEST(StatsTable, NothingIsSaidToBeNothing) {
    std::ostringstream out;
    writeText({kTables[1]}, 80, out);
    EXPECT_EQ(out.str(), "Nothing was recorded that could be counted.\n");
}

TEST(StatsTable, CsvHasAFieldForEachColumnAndNoFormula) {
    std::ostringstream out;
    writeCsv(kTables, out);
    EXPECT_EQ(out.str().substr(0, 39), "table,count,sum_ns,share,name\r\nkernels,");
    EXPECT_NE(out.str().find("kernels,12,3400000,0.25,\"'=gemm, \"\"tiled\"\"\"\r\n"), std::string::npos) << out.str();
    EXPECT_NE(out.str().find("overlap,0,\r\n"), std::string::npos) << out.str();
}

TEST(StatsTable, JsonHasNullForWhatIsUnknown) {
    std::ostringstream out;
    writeJson(kTables, "job", out);
    const auto json = nlohmann::json::parse(out.str());
    EXPECT_EQ(json["schema"], "rankscope.stats/1");
    EXPECT_EQ(json["tables"]["kernels"][0]["sum_ns"], 3400000);
    EXPECT_TRUE(json["tables"]["overlap"][0]["pctg"].is_null());
    EXPECT_TRUE(json["tables"]["copies"].empty());
}

}  // namespace
}  // namespace rankscope::stats
