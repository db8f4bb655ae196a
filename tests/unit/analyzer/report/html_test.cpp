// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "analyzer/report/analyze.h"
#include "analyzer/report/html/charts.h"
#include "analyzer/report/html/page.h"
#include "analyzer/report/html/report_sections.h"
#include "analyzer/report/html/table.h"
#include "analyzer/report/renderers.h"
#include "analyzer/text/plain_text.h"
#include "tests/unit/analyzer/jobs.h"

namespace rankscope::report {
namespace {

size_t countOf(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
    return count;
}

nlohmann::json embedded(const std::string& page) {
    const std::string mark = "id=\"rankscope-data\">";
    const size_t from = page.find(mark) + mark.size();
    return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

StepOverview overviewOf(const test::TraceFixture& trace) {
    const test::TemporaryFolder folder;
    trace.write(folder.path() / "trace.db");
    AnalyzeOptions options;
    options.overview = true;
    return analyze(folder.path() / "trace.db", options).overview.value();
}

TEST(PlainText, KeepsWhatIsTextAndReplacesWhatIsNot) {
    const std::string no = "\xEF\xBF\xBD";
    EXPECT_EQ(text::plainText("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80\n\t."), "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80\n\t.");
    EXPECT_EQ(text::plainText(std::string("a\0b\x1b[1m\r", 8)), "a" + no + "b" + no + "[1m" + no);
    EXPECT_EQ(text::plainText("\xC0\xAF"), no + no) << "not the shortest form";
    EXPECT_EQ(text::plainText("\xED\xA0\x80"), no + no + no) << "half a surrogate pair";
    EXPECT_EQ(text::plainText("\xF4\x90\x80\x80"), no + no + no + no) << "beyond U+10FFFF";
    EXPECT_EQ(text::plainText("end\xE2\x82"), "end" + no + no) << "cut off";
    EXPECT_EQ(text::plainText("\xEF\xBF\xBF"), no) << "a noncharacter, which XML does not hold";
    EXPECT_EQ(text::plainText("a\xE2\x80\xAE"
                              "b"),
              "a" + no + "b")
        << "would turn what follows it round";
    EXPECT_EQ(text::oneLine("a\nb\xE2\x80\xA8"
                            "c"),
              "a b c");
    EXPECT_EQ(text::shortened("gr\xC3\xBC\xC3\x9F", 6), "gr\xC3\xBC\xC3\x9F");
    EXPECT_EQ(text::shortened("gr\xC3\xBC\xC3\x9F"
                              "e",
                              6),
              "gr\xE2\x80\xA6")
        << "not inside a character";
    EXPECT_EQ(text::markupText("<a href=\"x\" b='&'>"), "&lt;a href=&quot;x&quot; b=&#39;&amp;&#39;&gt;");
}

TEST(HtmlPage, DataInAScriptCannotLeaveIt) {
    const nlohmann::json json = {{"name", "</script><!--<script>&\xE2\x80\xA8\xE2\x80\xA9"}};
    const std::string data = html::scriptData(json.dump());
    for (const char* part : {"<", ">", "&", "\xE2\x80\xA8", "\xE2\x80\xA9"})
        EXPECT_EQ(data.find(part), std::string::npos) << part;
    EXPECT_EQ(nlohmann::json::parse(data), json);
}

TEST(HtmlTable, CellsCarryWhatTheyAreSortedBy) {
    html::Table table("t", {{"name"}, {"value", true}});
    table.add({html::textCell("a\"b"), html::numberCell("12.3 ms", 12345678)});
    table.add({html::textCell("c"), html::unknownCell()});
    EXPECT_NE(table.markup().find(
                  "<td data-v=\"a&quot;b\">a&quot;b</td><td class=\"number\" data-v=\"12345678\">12.3 ms</td>"),
              std::string::npos)
        << table.markup();
    EXPECT_NE(table.markup().find("<td class=\"number\">unknown</td>"), std::string::npos);
}

std::string plainNumber(double value) {
    return std::to_string(value);
}

TEST(HtmlChart, ValuesAUnitInTheLastPlaceApartHaveAFewTicksOnly) {
    for (const double value : {1e18, 42.0}) {
        html::Chart chart{"steps", {"run", false, plainNumber}, {"step", false, plainNumber}, {}, {}, {}, false};
        chart.dots = {{1, value, "a", "", 3}, {2, std::nextafter(value, 2 * value), "b", "", 3}};
        const std::string markup = html::drawChart(chart);
        EXPECT_LE(countOf(markup, "class=\"gridline\""), 20u) << value;
        EXPECT_GE(countOf(markup, "class=\"gridline\""), 2u) << value;
        EXPECT_EQ(countOf(markup, "nan") + countOf(markup, "inf"), 0u) << markup;
    }
}

TEST(HtmlFinding, TheCommandToCopyIsQuotedForAShell) {
    Report report;
    report.run.name = "runs/a b; touch x";
    job::Finding finding;
    finding.savingNs = facts::Estimate{};
    finding.changes = {{"kernel", {{"it's*", "0.5"}}}};
    const std::string card = html::findingCard(report, finding);
    EXPECT_NE(card.find("rankscope whatif " + text::markupText("'runs/a b; touch x' --change 'kernel:it'\\''s*=0.5'")),
              std::string::npos)
        << card;
}

TEST(HtmlReport, HoldsTheJsonReportAndEveryFinding) {
    test::DdpJob job;
    job.slow = {{5, 1.5}};
    const Report report = test::playDdp(job).analyze();
    const std::string page = renderHtml(report);
    EXPECT_EQ(embedded(page), nlohmann::json::parse(renderJson(report)));
    EXPECT_EQ(countOf(page, "<article class=\"finding\">"), report.findings.size());
    EXPECT_EQ(page.find("http"), page.find("http-equiv"));
    EXPECT_EQ(page.rfind("http"), page.find("http-equiv")) << "the page names no place on the network";
}

TEST(HtmlReport, TenThousandFindingsAreCutAndItSaysSo) {
    test::DdpJob job;
    job.slow = {{5, 1.5}};
    Report report = test::playDdp(job).analyze();
    ASSERT_FALSE(report.findings.empty());
    report.findings.resize(10'000, report.findings.front());
    report.notes.resize(10'000, report.findings.front());
    const std::string page = renderHtml(report);
    EXPECT_EQ(countOf(page, "<article class=\"finding\">"), 200u);
    EXPECT_NE(page.find("200 of 10000 findings are shown"), std::string::npos);
    EXPECT_NE(page.find("200 of 10000 notes are shown"), std::string::npos);
    EXPECT_NE(page.find("10000 findings. The first costs"), std::string::npos);
    EXPECT_LT(page.size(), 4'000'000u);
}

TEST(HtmlReport, SixtyFourRanksStayUnderTwoMegabytesAtWorst) {
    test::DdpJob job;
    job.slow = {{5, 1.5}};
    Report report = test::playDdp(job).analyze();
    ASSERT_FALSE(report.breakdown.empty());
    StepOverview overview{3, 0, 100 * test::kMs, {}};
    report.breakdown.resize(64, report.breakdown.front());
    for (int rank = 0; rank < 64; ++rank) {
        report.breakdown[static_cast<size_t>(rank)].rank = rank;
        OverviewLane lane{rank, {}, {}};
        for (size_t column = 0; column < StepOverview::kColumns;
             ++column) {  // another colour in every column: the most that can be drawn
            lane.device += "cm"[column % 2];
            lane.communication += "two"[column % 3];
        }
        overview.lanes.push_back(lane);
    }
    report.overview = overview;
    const std::string page = renderHtml(report);
    EXPECT_LT(page.size(), 2'000'000u);
    EXPECT_EQ(countOf(page, "<span class=\"who"), 64u);
}

TEST(HtmlReport, AnEmptyRunIsAPageToo) {
    const std::string page = renderHtml(test::TraceFixture(2, 2).analyze());
    EXPECT_NE(page.find("nothing to analyse"), std::string::npos);
    EXPECT_EQ(embedded(page)["schema"], "rankscope.report/1");
}

TEST(StepOverview, ShowsWhatADeviceAndItsNetworkDid) {
    test::TraceFixture trace(2, 2);
    const int comm = trace.communicator({0, 1});
    for (int step = 0; step < 3; ++step) {
        const int64_t at = step * 100 * test::kMs;
        for (int rank = 0; rank < 2; ++rank) trace.step(rank, step, at, 100 * test::kMs);
        for (int rank = 0; rank < 2; ++rank) trace.kernel(rank, at, (rank == 0 ? 20 : 40) * test::kMs, "gemm", 64);
        trace.collective(comm, store::Op::allReduce, 1 << 20, {at + 20 * test::kMs, at + 40 * test::kMs},
                         20 * test::kMs);
        trace.copy(0, at + 70 * test::kMs, 10 * test::kMs);
    }
    const StepOverview overview = overviewOf(trace);
    ASSERT_EQ(overview.lanes.size(), 2u);
    EXPECT_EQ(overview.endNs - overview.startNs, 100 * test::kMs);
    const auto columns = [](char letter, size_t percent) {
        return std::string(StepOverview::kColumns * percent / 100, letter);
    };
    EXPECT_EQ(overview.lanes[0].device, columns('c', 20) + columns('.', 50) + columns('m', 10) + columns('.', 20));
    EXPECT_EQ(overview.lanes[0].communication,
              columns('.', 20) + columns('w', 20) + columns('t', 20) + columns('.', 40));
    EXPECT_EQ(overview.lanes[1].device, columns('c', 40) + columns('.', 60));
    EXPECT_EQ(overview.lanes[1].communication, columns('.', 40) + columns('t', 20) + columns('.', 40));
}

TEST(StepOverview, KernelsNarrowerThanAColumnKeepTheirShare) {
    test::TraceFixture trace(1, 1);
    for (int step = 0; step < 3; ++step) {
        trace.step(0, step, step * 100 * test::kMs, 100 * test::kMs);
        for (int i = 0; i < 10'000; ++i)
            trace.kernel(0, step * 100 * test::kMs + i * 10 * test::kUs, 3 * test::kUs, "tiny", 1);
    }
    const StepOverview overview = overviewOf(trace);
    ASSERT_EQ(overview.lanes.size(), 1u);
    EXPECT_NEAR(static_cast<double>(std::ranges::count(overview.lanes[0].device, 'c')), 0.3 * StepOverview::kColumns,
                2);
    EXPECT_GT(countOf(overview.lanes[0].device, "c."), StepOverview::kColumns / 5) << "spread, not heaped up";
}

TEST(StepOverview, TheOtherRanksAreSpreadEvenly) {
    const auto chosenOf = [](int ranks, const std::vector<int>& named) {
        StepOverview overview{0, 0, test::kMs, {}};
        for (int rank = 0; rank < ranks; ++rank) overview.lanes.push_back({rank, "c", "."});
        return html::chosenLanes(overview, named);
    };
    for (const int ranks : {0, 1, 63, 64}) EXPECT_EQ(chosenOf(ranks, {0}).size(), static_cast<size_t>(ranks));
    std::vector<int> named(20);
    std::iota(named.begin(), named.end(), 24);
    const std::vector<size_t> chosen = chosenOf(1024, named);
    ASSERT_EQ(chosen.size(), html::kMostLanes);
    EXPECT_TRUE(chosen.front() == 0 && chosen.back() == 1023);
    for (size_t i = 1; i < chosen.size(); ++i) EXPECT_LE(chosen[i] - chosen[i - 1], 24u) << chosen[i];
    EXPECT_EQ(chosenOf(65, {}).size(), html::kMostLanes);
}

TEST(StepOverview, OfManyRanksThoseThatFindingsNameAreDrawn) {
    StepOverview overview{0, 0, test::kMs, {}};
    for (int rank = 0; rank < 1024; ++rank) overview.lanes.push_back({rank, "c", "."});
    const std::vector<size_t> chosen = html::chosenLanes(overview, {777, 1022});
    EXPECT_EQ(chosen.size(), html::kMostLanes);
    EXPECT_TRUE(std::ranges::count(chosen, 777u) == 1 && std::ranges::count(chosen, 1022u) == 1);
    EXPECT_TRUE(std::ranges::is_sorted(chosen));
    EXPECT_NE(html::drawLanes(overview, {777}).find("64 of 1024 ranks are drawn"), std::string::npos);
}

}  // namespace
}  // namespace rankscope::report
