// SPDX-License-Identifier: Apache-2.0
// The export for spreadsheets: names stay names there.
#include <gtest/gtest.h>

#include <sstream>

#include "analyzer/export/exported_event.h"

namespace rankscope::exports {
namespace {

std::string lineOf(std::string_view name) {
    std::ostringstream out;
    const auto sink = csvTable(out);
    const ExportedTrack track{3, 1, "stream 7"};
    sink->process({3, "rank 3", "node1"});
    sink->track(track);
    ExportedEvent event;
    event.name = name;
    event.startNs = -5;
    sink->event(track, event);
    sink->finish();
    const std::string text = out.str();
    return text.substr(text.find("\r\n") + 2);
}

TEST(CsvTable, ANameIsNoFormula) {
    EXPECT_EQ(lineOf("gemm").substr(0, 36), "3,node1,stream 7,kernel,gemm,-5,,,,,") << "numbers keep their sign";
    for (const char* name : {"=1+1", "+1", "-1", "@A1"})
        EXPECT_NE(lineOf(name).find(std::string(",'") + name + ",-5,"), std::string::npos) << lineOf(name);
    EXPECT_NE(lineOf("=HYPERLINK(\"x\",\"y\")").find(",\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\","), std::string::npos)
        << lineOf("=HYPERLINK(\"x\",\"y\")");
    EXPECT_NE(lineOf("a=b").find(",a=b,"), std::string::npos);
}

}  // namespace
}  // namespace rankscope::exports
